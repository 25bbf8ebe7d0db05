"""A session under mixed load with everything going wrong that can: `python -m bench.soak`.

Clients of several tenants submit native, staged and identical queries; they cancel, set time
limits, read slowly, drop their handles, write bad SQL and name tables that do not exist. Profiles
change all the time, and slots fail. Every query must end in the answer that plain DuckDB gave
beforehand, or in an error that fits what was done to it. When all have left, the session must be
idle, and after it is closed nothing may be left: memory, threads, files, DuckDB instances, objects.
"""
