"""What one organisation's flood does to the others; run as `python -m benchmarks.floods`."""
