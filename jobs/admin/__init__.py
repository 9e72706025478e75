"""Registers the admin pages of the queue, of schedules and of messages when imported."""

from accounts.admin.event_words import register_subject
from jobs.admin import messages, queue, schedules
from jobs.audit_kinds import JobSubject
from jobs.models import Schedule

register_subject(JobSubject.SCHEDULE, Schedule)

__all__ = ["messages", "queue", "schedules"]
