"""A session's own instance, where every statement with side effects runs."""
