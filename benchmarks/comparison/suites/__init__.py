"""The suites: each starts its targets and yields them."""
