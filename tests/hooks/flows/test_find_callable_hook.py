"""Look-ups that share a statement find what each would find alone."""

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import credentials
from hooks.flows import find_callable_hook as module
from hooks.flows.find_callable_hook import _find_rows, _LookUp, find_callable_hook
from hooks.flows.hooks import rotate_call_token
from hooks.models import Hook
from tests.factories import IssuedHook, make_hook, make_organisation, make_script
from tests.query_plans import plan_of


@pytest.fixture
def hooks(db: None) -> list[IssuedHook]:
    """Two of one script, one of another script, and one of another organisation."""
    acme, globex = make_organisation("Acme"), make_organisation("Globex")
    script = make_script(acme)
    return [
        make_hook(script, "first"),
        make_hook(script, "second"),
        make_hook(make_script(acme, name="other"), "third"),
        make_hook(make_script(globex), "theirs"),
    ]


def look_up(place: Hook, call_token: str, hook_id: uuid.UUID | None = None) -> _LookUp:
    digests = credentials.digests(call_token)
    return _LookUp(place.script.organisation_id, place.script_id, hook_id, digests)


def found(look_ups: list[_LookUp]) -> list[uuid.UUID | None]:
    return [row and row[2] for row in _find_rows(look_ups)]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 16])
def test_each_finds_its_own_hook(hooks: list[IssuedHook], count: int) -> None:
    asked = [hooks[place % len(hooks)] for place in range(count)]

    with CaptureQueriesContext(connection) as statements:
        rows = found([look_up(each.hook, each.call_token) for each in asked])

    assert rows == [each.hook.pk for each in asked]
    assert len(statements) == 1


def wrong_look_ups(hooks: list[IssuedHook]) -> Iterator[_LookUp]:
    """Each names another place than that of its token, where another look-up is right."""
    first, second, third, theirs = hooks
    yield look_up(theirs.hook, first.call_token)
    yield look_up(third.hook, first.call_token)
    yield look_up(first.hook, theirs.call_token)
    yield look_up(first.hook, "mhc_none")
    yield look_up(first.hook, first.call_token, second.hook.pk)
    mixed = look_up(first.hook, first.call_token)
    yield mixed._replace(organisation_id=theirs.hook.script.organisation_id)
    yield mixed._replace(script_id=theirs.hook.script_id)


def test_a_token_opens_nothing_of_those_that_ask_beside(hooks: list[IssuedHook]) -> None:
    right = [look_up(each.hook, each.call_token) for each in hooks]
    wrong = list(wrong_look_ups(hooks))

    rows = found([*right, *wrong])

    assert rows == [each.hook.pk for each in hooks] + [None] * len(wrong)
    assert found(wrong) == [None] * len(wrong)
    assert [found([each]) for each in wrong] == [[None]] * len(wrong)


def test_a_hook_of_basic_authentication_is_found_by_its_id(hooks: list[IssuedHook]) -> None:
    first = hooks[0]

    assert found([look_up(first.hook, first.call_token, first.hook.pk)]) == [first.hook.pk]


def test_the_token_before_the_last_rotation_is_found_until_its_overlap_ends(
    hooks: list[IssuedHook],
) -> None:
    first, second, *_ = hooks
    renewed = rotate_call_token(first.hook, overlap_seconds=60)
    asked = [look_up(first.hook, token) for token in (first.call_token, renewed.call_token)]
    asked.append(look_up(second.hook, second.call_token))

    with CaptureQueriesContext(connection) as statements:
        assert found(asked) == [first.hook.pk, first.hook.pk, second.hook.pk]
    assert len(statements) == 2
    Hook.objects.filter(pk=first.hook.pk).update(
        previous_valid_until=timezone.now() - timedelta(seconds=1)
    )
    assert found(asked) == [None, first.hook.pk, second.hook.pk]


def test_calls_that_come_together_renew_a_digest_once(
    hooks: list[IssuedHook], settings: Any
) -> None:
    first = hooks[0]
    rotated = rotate_call_token(first.hook, overlap_seconds=60)
    settings.PEPPERS = {99: b"9" * 32, **settings.PEPPERS}
    place = (first.hook.script.organisation_id, first.hook.script_id)
    row = _find_rows([look_up(first.hook, rotated.call_token)])[0]
    found_together = patch.object(module._look_ups, "load", return_value=row)

    with found_together:
        specs = [find_callable_hook(*place, rotated.call_token) for _ in range(2)]

    renewed = credentials.digest(rotated.call_token).value
    assert Hook.objects.get(pk=first.hook.pk).digest == renewed
    assert [spec and spec.overlapping_digest for spec in specs] == [renewed] * 2


def test_a_hook_that_cannot_be_called_is_not_found_beside_others(hooks: list[IssuedHook]) -> None:
    first, second, third, _ = hooks
    Hook.objects.filter(pk=first.hook.pk).update(is_enabled=False)
    asked = [look_up(each.hook, each.call_token) for each in (first, second, third)]

    assert found(asked) == [None, second.hook.pk, third.hook.pk]


def test_the_call_runs_its_own_script(hooks: list[IssuedHook]) -> None:
    first = hooks[0]
    opened = find_callable_hook(
        first.hook.script.organisation_id, first.hook.script_id, first.call_token
    )

    assert opened is not None
    spec = opened.saved_run()
    assert (spec.hook_id, spec.script_name) == (first.hook.pk, first.hook.script.name)
    assert spec.source == first.hook.script.source.encode()
    assert module._look_ups.load(look_up(first.hook, "mhc_none")) is None


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans a table this small")
def test_the_hooks_of_a_script_are_not_read(hooks: list[IssuedHook]) -> None:
    with CaptureQueriesContext(connection) as statements:
        found([look_up(each.hook, f"{each.call_token} unknown") for each in hooks])
    plans = [plan_of(statement["sql"]) for statement in statements]

    assert "(digest=?)" in plans[0]
    assert "(previous_digest=?)" in plans[1]
    assert not any("SCAN" in plan or "script_id=?" in plan for plan in plans)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite plans in the client")
@pytest.mark.parametrize("count", [1, 16])
def test_the_server_does_not_plan_each_look_up(hooks: list[IssuedHook], count: int) -> None:
    first = hooks[0].hook
    others = [
        Hook(script=first.script, name=str(number), digest=f"{number:064x}", pepper_version=1)
        for number in range(2000)
    ]
    Hook.objects.bulk_create(others)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE hooks_hook")
    asked = [look_up(each.hook, each.call_token) for each in hooks * 4][:count]

    for _ in range(20):
        assert None not in found(asked)

    with connection.cursor() as cursor:
        cursor.execute("SELECT generic_plans, custom_plans FROM pg_prepared_statements")
        plans = [row for row in cursor.fetchall() if sum(row) == 20]
    # PostgreSQL compares five plans for the values with the one for any.
    assert plans == [(15, 5)]
