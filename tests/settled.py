"""Waits for what PostgreSQL holds back while a transaction, of whichever test, is open."""

from core.database.commit_order import settled_before
from scripts_engine.models import Run
from tests.eventually import eventually


def settle() -> None:
    """Waits until no transaction, of others either, holds back what has ended."""
    ended = Run.objects.filter(ended_in__isnull=False)
    numbers = [number or 0 for number in ended.values_list("ended_in", flat=True)]
    eventually(lambda: settled_before(ended, "ended_in") > max(numbers, default=0))
