"""What a server adds to a session, and what it is worth to a team; peers in the same run."""
