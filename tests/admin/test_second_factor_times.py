"""Codes that are entered at the same time, and clocks that differ."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.models import User
from tests.admin.pages import text_of
from tests.admin.second_factors import (
    after_password,
    bob,
    code_of,
    enter,
    is_in,
    recovery_codes,
    wait_a_minute,
    wrong_code,
)
from tests.concurrency import at_once

__all__ = ["bob", "recovery_codes"]


@pytest.mark.django_db(transaction=True)
def test_concurrent_uses_of_one_app_code_log_in_once(bob: User, recovery_codes: list[str]) -> None:
    clients, code = [after_password() for _ in range(6)], code_of(bob)
    at_once(6, lambda number: enter(clients[number], code))

    assert [is_in(client) for client in clients].count(True) == 1


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=400)])
def test_wrong_codes_from_before_a_clock_set_back_do_not_delay(
    bob: User, recovery_codes: list[str], ahead: timedelta
) -> None:
    TOTPDevice.objects.update(
        throttling_failure_count=3, throttling_failure_timestamp=timezone.now() + ahead
    )
    client = after_password()
    wrong = enter(client, wrong_code(bob))
    right_too_early = enter(client, code_of(bob))
    wait_a_minute()
    enter(client, code_of(bob))

    assert "This code is wrong" in text_of(wrong)
    assert right_too_early.status_code == 429
    assert int(right_too_early["Retry-After"]) <= 8
    assert is_in(client)


def test_wrong_codes_at_a_node_with_a_fast_clock_count_on_all_nodes(
    bob: User, recovery_codes: list[str]
) -> None:
    TOTPDevice.objects.update(
        throttling_failure_count=3,
        throttling_failure_timestamp=timezone.now() + timedelta(seconds=5),
    )

    assert enter(after_password(), code_of(bob)).status_code == 429


def test_a_code_noted_in_the_future_hinders_no_code_two_steps_later(
    bob: User, recovery_codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    TOTPDevice.objects.update(last_t=int(now + 400 * 86_400) // 30)
    used = code_of(bob)
    client = after_password()
    replayed = enter(client, used)
    wait_a_minute()
    monkeypatch.setattr(time, "time", lambda: now + 60)
    later = code_of(bob, step=2)
    enter(client, later)

    assert replayed.status_code == 200
    assert is_in(client)
