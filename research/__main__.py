"""`python -m research`, from a checkout."""

from .command import main

main()
