"""`python -m queryard.cli`, where the `queryard` script is not installed."""

from . import main

main()
