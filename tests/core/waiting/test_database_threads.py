import pytest

from accounts.models import Organisation
from core.waiting import DatabaseThreads
from tests.database_connections import opened_connections


@pytest.mark.django_db(transaction=True)
def test_connections_of_threads_are_kept_for_later_calls_and_closed_at_shutdown() -> None:
    with opened_connections() as opened, DatabaseThreads(1) as threads:
        answers = [threads.submit(Organisation.objects.count).result() for _ in range(3)]
        open_before = opened.still_open[:]

    assert answers == [0, 0, 0]
    assert len(open_before) == len(opened) == 1
    assert opened.still_open == []
