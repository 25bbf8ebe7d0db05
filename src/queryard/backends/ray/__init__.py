"""A Ray cluster as a backend: an actor per node holds a whole local backend.

Import from the modules. Ray itself is imported when a cluster is joined, and never before.
"""
