"""Speed and memory, compared with the alternatives of a user: `python -m benchmarks`."""
