"""Provisioning: how many nodes there should be. One file per rule."""
