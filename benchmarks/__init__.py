"""Speed and memory, side by side with what a user would otherwise have: `python -m benchmarks`."""
