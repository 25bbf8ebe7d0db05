"""Puts this directory on the path, so that all tests can use `kernel_driver`."""
