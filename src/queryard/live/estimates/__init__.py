"""What is expected of queries: predicted as they come, revised while they run, forecast beside."""
