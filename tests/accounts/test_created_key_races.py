"""Keys that are revoked and narrowed while others are created with them."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.flows.api_keys import revoke_api_key, update_api_key
from accounts.models import ApiKey, Organisation
from core.errors import ForbiddenError
from core.http.origin import NOWHERE
from tests.concurrency import at_once
from tests.device_logins import approved, child_of
from tests.factories import make_api_key

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 24 if connection.vendor == "postgresql" else 9


@pytest.fixture
def family(acme: Organisation) -> list[ApiKey]:
    """A program's login, a key that it created, one that that one created, and so on."""
    keys = [approved(make_api_key(acme, "first")).api_key]
    while len(keys) < 6:
        keys.append(child_of(keys[-1]).api_key)
    return keys


def test_no_key_survives_that_is_created_while_its_maker_is_revoked(family: list[ApiKey]) -> None:
    def act(number: int) -> None:
        key = family[number % len(family)]
        if number % 3 == 0:
            revoke_api_key(family[0])
            return
        try:
            child_of(key)
        except ForbiddenError:
            return

    at_once(THREADS, act)

    assert not ApiKey.objects.filter(revoked_at=None).exists()


def test_changes_of_keys_and_of_those_that_they_created_do_not_block_each_other(
    family: list[ApiKey],
) -> None:
    end = timezone.now() + timedelta(days=1)

    def act(number: int) -> str:
        key = family[number % len(family)]
        return update_api_key(key, name=f"{number}", expires_at=end, origin=NOWHERE).name

    names = at_once(THREADS, act)

    assert names == [f"{number}" for number in range(THREADS)]
    assert set(ApiKey.objects.values_list("expires_at", flat=True)) == {end}


def test_a_key_that_is_created_while_its_maker_is_narrowed_has_no_more(
    family: list[ApiKey],
) -> None:
    def act(number: int) -> None:
        if number % 3 == 0:
            update_api_key(family[0], scopes=["ReadKeys"], origin=NOWHERE)
        else:
            key = family[number % len(family)]
            try:
                child_of(key, scopes=["All"])
            except ForbiddenError:
                return

    at_once(THREADS, act)

    assert set(map(tuple, ApiKey.objects.values_list("scopes", flat=True))) == {("ReadKeys",)}
