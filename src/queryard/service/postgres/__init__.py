"""PostgreSQL's wire protocol: clients that speak to PostgreSQL reach the scheduler with it."""
