"""Online answers: how soon, how near, and what they cost beside the exact query."""
