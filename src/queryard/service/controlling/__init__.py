"""What an admin changes while a server runs: each change is recorded, kept and can be undone."""
