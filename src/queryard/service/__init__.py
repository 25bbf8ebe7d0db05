"""Queryard as a server: one host for a team, reached over HTTP and PostgreSQL's protocol."""
