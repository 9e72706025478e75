"""Background tasks: retries, time limits and recovery, which django-tasks-db lacks.

Tasks that fail for a temporary reason are retried, and tasks of lost workers are queued again.
Tasks that fail for good are listed in the admin, where they can be queued again by hand.
"""
