"""Speculation: which tasks are run a second time. One file per rule."""
