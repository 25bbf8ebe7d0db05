"""Kinds of work, one module each, behind one protocol."""
