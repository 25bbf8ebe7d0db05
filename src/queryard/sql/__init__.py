"""Tables and what is known of them, and from SQL to a DAG of jobs: plans, never executes."""
