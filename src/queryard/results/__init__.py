"""Rows on their way to a reader, answers, their conversion, and tables for people."""
