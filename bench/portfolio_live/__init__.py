"""A portfolio in a session beside every policy that it chooses from, on loads that change."""
