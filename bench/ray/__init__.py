"""What a Ray cluster costs beside one process, on one machine."""
