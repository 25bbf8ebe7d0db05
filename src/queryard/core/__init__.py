"""The kernel: events in, commands out. Standard library only; no clock, no I/O."""
