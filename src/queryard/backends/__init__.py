"""Where work runs: backends carry out the kernel's commands and report what happened."""
