"""What is let in, and how much memory it reserves."""
