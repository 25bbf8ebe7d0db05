"""What an operator's page shows: the present, the last day, the past, the cluster and the log.

Everything here is plain data for the page, the terminal and programs. A token sees what its tenant
may see (`visibility`).
"""
