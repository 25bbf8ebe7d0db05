"""Predictions of queries: made on arrival, revised while they run; and forecasts of the queue."""
