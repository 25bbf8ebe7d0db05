"""The page of a server: what it shows and steers, in a browser."""
