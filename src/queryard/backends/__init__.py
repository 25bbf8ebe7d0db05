"""Where work runs: carry out the kernel's commands, tell what really happened."""
