"""A session on a server: the Python API of an embedded session, over HTTP."""
