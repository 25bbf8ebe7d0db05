"""Where work runs: obey the kernel's commands, tell what really happened."""
