"""Slot splits: whether a free slot serves maps or reduces. One file per rule."""
