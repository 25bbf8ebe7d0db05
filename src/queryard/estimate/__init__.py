"""Predictions from what was seen: pure maths, no state of its own."""
