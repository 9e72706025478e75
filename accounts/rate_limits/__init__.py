"""Rate limits: their numbers, and the counters in the database."""
