"""Statements as text: their words, kinds and templates, what they name, read and write."""
