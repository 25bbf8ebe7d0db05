"""What a client of a server may put and reach, and how its instances are sealed."""
