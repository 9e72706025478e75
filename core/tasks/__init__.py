"""Background work: what the task queue's library leaves to its users.

Tasks that failed for a passing reason are tried again; those whose worker is gone are taken up;
those that failed for good are shown, and queued again by hand.
"""
