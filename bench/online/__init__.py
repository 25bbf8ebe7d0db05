"""Samples and online answers, measured."""
