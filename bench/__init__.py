"""Speed and memory, as ratios to a bare loop run beside them. `make bench` runs everything."""
