"""Measures how one organisation's flood affects others: `python -m benchmarks.floods`."""
