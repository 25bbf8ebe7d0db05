"""Placement: which pending task of a job runs on a node, and whether here. One file per rule."""
