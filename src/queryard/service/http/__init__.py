"""The server over HTTP: queries by id, their rows, events and figures."""
