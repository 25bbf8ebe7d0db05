"""Scan sharing: which tasks ride together on one read of a split. One file per rule."""
