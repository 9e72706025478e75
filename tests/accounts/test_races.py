"""What holds however many try at once."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Sum

from accounts.flows.api_keys import IssuedApiKey, rotate_api_key
from accounts.flows.check_pin import check_pin
from accounts.flows.organisations import accept_invitation, add_member, remove_member
from accounts.flows.users import deactivate_user, update_user
from accounts.models import (
    ApiKey,
    AuditReason,
    AuthEvent,
    DeviceToken,
    Invitation,
    Organisation,
    PinChallenge,
    PinCode,
    PinFailures,
    User,
)
from accounts.models.pin_failures import strangers_bucket
from core.errors import ForbiddenError, NotFoundError
from core.http.origin import NOWHERE
from core.waiting import DatabaseThreads
from jobs.models import Message
from tests.concurrency import at_once
from tests.factories import make_code, make_device_token, make_pin

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _without_windows(settings: Any) -> None:
    """The challenge and the account hold by themselves, without the windows of the client."""
    settings.IS_RATE_LIMITED = False


# One writer at a time makes a race on SQLite a queue: fewer show the same there.
THREADS = 100 if connection.vendor == "postgresql" else 20
STRANGERS = max(THREADS, 40)


def guess(email: str, pin: str, device: uuid.UUID | None = None) -> bool:
    device = device or uuid.uuid4()
    return check_pin(email=email, pin=pin, device=device, label="", origin=NOWHERE) is not None


def wrong(pin: str) -> str:
    return f"{(int(pin) + 1) % 10**6:06d}"


def evaluated() -> int:
    """The guesses that were compared with a code."""
    return AuthEvent.objects.filter(reason=AuditReason.WRONG_OR_EXPIRED_PIN).count()


@pytest.mark.parametrize("names_itself", [False, True])
def test_of_many_guesses_of_a_device_at_once_exactly_five_are_evaluated(
    alice: User, names_itself: bool
) -> None:
    device = uuid.uuid4()
    pin = make_pin(alice, device if names_itself else None)
    outcomes = at_once(THREADS, lambda _: guess(alice.email, wrong(pin), device))

    assert outcomes == [False] * THREADS
    assert evaluated() == PinChallenge.objects.get().tries == settings.PIN_TRIES_PER_DEVICE == 5
    assert PinFailures.objects.aggregate(Sum("failures_today")) == {"failures_today__sum": 5}
    assert not guess(alice.email, pin, device)


def test_of_many_guesses_of_a_known_device_at_once_exactly_five_are_evaluated(
    alice: User,
) -> None:
    device = make_device_token(alice).device_token.device
    pin = make_pin(alice)
    at_once(THREADS, lambda _: guess(alice.email, wrong(pin), device))

    assert evaluated() == 5
    assert not guess(alice.email, pin, device)


def test_of_the_guesses_of_many_strangers_at_once_exactly_twenty_are_evaluated(
    alice: User,
) -> None:
    pin = make_pin(alice)
    outcomes = at_once(STRANGERS, lambda _: guess(alice.email, wrong(pin)))

    assert outcomes == [False] * STRANGERS
    assert evaluated() == PinChallenge.objects.get().tries == settings.PIN_FAILURES_PER_DAY == 20
    assert not guess(alice.email, pin)


def test_of_the_guesses_of_many_named_devices_at_once_exactly_fifty_are_evaluated(
    alice: User,
) -> None:
    devices = [uuid.uuid4() for _ in range(12)]
    pins = [make_pin(alice, device) for device in devices]

    def act(number: int) -> bool:
        return guess(alice.email, wrong(pins[number % 12]), devices[number % 12])

    outcomes = [at_once(12, act) for _ in range(6)]

    assert outcomes == [[False] * 12] * 6
    assert evaluated() == settings.PIN_FAILURES_OF_NAMED_PER_DAY == 50


def test_a_code_of_a_named_device_is_redeemed_once(alice: User) -> None:
    device = uuid.uuid4()
    pin = make_pin(alice, device)
    outcomes = at_once(THREADS, lambda _: guess(alice.email, pin, device))

    assert outcomes.count(True) == 1
    assert DeviceToken.objects.count() == 1


def test_of_many_redemptions_at_once_one_succeeds(alice: User) -> None:
    pin = make_pin(alice)
    outcomes = at_once(THREADS, lambda _: guess(alice.email, pin))

    assert outcomes.count(True) == 1
    assert DeviceToken.objects.count() == 1


def test_the_account_is_stopped_exactly_at_its_daily_count(alice: User) -> None:
    make_pin(alice)
    PinFailures.objects.update(failures_today=settings.PIN_FAILURES_PER_DAY - 3)
    bucket = strangers_bucket(alice.email)
    claims = at_once(THREADS, lambda _: PinFailures.objects.claim_try(bucket))

    assert claims.count(True) == 3


def test_codes_made_at_once_share_one_challenge(alice: User) -> None:
    pins = at_once(8, lambda _: make_code(alice.email, alice))

    challenge = PinChallenge.objects.get()
    assert challenge.codes.count() == 8
    found = [PinCode.objects.find_challenge([challenge], pin) for pin in set(pins)]
    assert found.count(challenge) == 3


def test_a_change_from_a_row_read_earlier_undoes_no_deactivation(
    acme: Organisation, alice: User
) -> None:
    stale = User.objects.get(pk=alice.pk)
    deactivate_user(acme, User.objects.get(pk=alice.pk))
    update_user(acme, stale, name="Alicia")

    alice.refresh_from_db()
    assert (alice.name, alice.is_active) == ("Alicia", False)
    assert alice.sessions_valid_after is not None


def test_of_two_rotations_from_one_row_the_later_takes_over_the_earlier(
    acme_key: IssuedApiKey,
) -> None:
    stale = [ApiKey.objects.get() for _ in range(2)]
    first, second = (
        rotate_api_key(row, overlap_seconds=60, origin=NOWHERE).secret for row in stale
    )

    api_key = ApiKey.objects.get()
    assert api_key.has_secret(second)
    assert api_key.has_secret(first)
    assert not api_key.has_secret(acme_key.secret)


def test_a_deactivation_is_not_undone_by_a_change_at_the_same_time(
    acme: Organisation, alice: User
) -> None:
    def act(number: int) -> None:
        stale = User.objects.get(pk=alice.pk)
        if number == 3:
            deactivate_user(acme, stale)
        else:
            update_user(acme, stale, name=f"Alice {number}")

    at_once(7, act)

    alice.refresh_from_db()
    assert not alice.is_active
    assert alice.sessions_valid_after is not None
    assert alice.name.startswith("Alice ")


# --- Invitations ----------------------------------------------------------------------------------


def invite(organisation: Organisation, user: User) -> Invitation:
    invitation = add_member(organisation, email=user.email)
    assert isinstance(invitation, Invitation)
    return invitation


def succeeds(action: Callable[[], object]) -> bool:
    """Whether the flow did what was asked."""
    try:
        return action() is not False
    except (NotFoundError, ForbiddenError):
        return False


def test_of_many_acceptances_at_once_one_succeeds(acme: Organisation, charlie: User) -> None:
    invitation = invite(acme, charlie)
    outcomes = at_once(8, lambda _: succeeds(lambda: accept_invitation(charlie, invitation.pk)))

    assert outcomes.count(True) == 1
    assert acme.memberships.filter(user=charlie).count() == 1
    assert Invitation.objects.count() == 0


@pytest.mark.parametrize("_try", range(5))
def test_accepting_and_withdrawing_at_once_leave_nothing_between(
    acme: Organisation, charlie: User, _try: int
) -> None:
    invitation = invite(acme, charlie)
    actions = [
        lambda: accept_invitation(charlie, invitation.pk),
        lambda: remove_member(acme, charlie),
    ]
    outcomes = at_once(2, lambda number: succeeds(actions[number]))

    # Withdrawn before, or accepted and then removed.
    assert outcomes in ([False, True], [True, True])
    assert not acme.memberships.filter(user=charlie).exists()
    assert Invitation.objects.count() == 0


@pytest.mark.parametrize("_try", range(5))
def test_accepting_and_pruning_at_once_give_one_outcome(
    acme: Organisation, charlie: User, _try: int
) -> None:
    invitation = invite(acme, charlie)
    actions: list[Callable[[], object]] = [
        lambda: accept_invitation(charlie, invitation.pk),
        lambda: Invitation.objects.filter(pk=invitation.pk).delete()[0] == 1,
    ]
    outcomes = at_once(2, lambda number: succeeds(actions[number]))

    assert sorted(outcomes) == [False, True]
    assert acme.memberships.filter(user=charlie).exists() is outcomes[0]


@pytest.mark.parametrize("_try", range(5))
def test_home_cannot_change_the_phone_of_a_user_who_just_joined_elsewhere(
    acme: Organisation, globex: Organisation, charlie: User, _try: int
) -> None:
    invitation = invite(acme, charlie)
    seen: list[bool] = []

    def change() -> None:
        with transaction.atomic():
            update_user(globex, charlie, phone="+15550100111")
            seen.append(acme.memberships.filter(user=charlie).exists())

    actions = [change, lambda: accept_invitation(charlie, invitation.pk)]
    outcomes = at_once(2, lambda number: succeeds(actions[number]))

    charlie.refresh_from_db()
    assert outcomes[1]
    assert (charlie.phone == "+15550100111") is outcomes[0]
    assert seen in ([], [False])


@pytest.mark.parametrize("_try", range(3))
def test_inviting_at_once_makes_one_invitation(
    acme: Organisation, charlie: User, _try: int
) -> None:
    at_once(6, lambda _: add_member(acme, email=charlie.email))

    assert Invitation.objects.count() == 1
    assert Message.objects.count() == 1


@pytest.mark.parametrize("_try", range(5))
def test_a_change_of_role_and_name_and_a_removal_at_once_wait_for_each_other(
    acme: Organisation, charlie: User, globex: Organisation, _try: int
) -> None:
    def act(number: int) -> bool:
        if number % 2:
            return succeeds(lambda: remove_member(globex, charlie))
        return succeeds(lambda: update_user(globex, charlie, role="administrator", name="Charles"))

    outcomes = at_once(8, act)

    assert outcomes[1::2].count(True) == 1
    assert not globex.memberships.filter(user=charlie).exists()


def wait_for_locks(count: int) -> None:
    """Returns when so many transactions wait for another."""
    waiting = """
        SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE NOT granted AND datname = current_database()
    """
    with connection.cursor() as cursor:
        found = 0
        while found < count:
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(waiting)
            [found] = cursor.fetchone()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_a_login_and_the_next_code_do_not_wait_for_each_other(alice: User) -> None:
    pin, stranger = make_pin(alice), uuid.uuid4()
    # The next code needs another challenge.
    for _ in range(settings.PIN_TRIES_PER_DEVICE):
        guess(alice.email, wrong(pin), stranger)

    with DatabaseThreads(2) as executor:
        with transaction.atomic():
            PinChallenge.objects.select_for_update(no_key=True).get()
            login = executor.submit(guess, alice.email, pin)
            wait_for_locks(1)
            code = executor.submit(make_pin, alice)
            wait_for_locks(2)
        assert (login.result(), len(code.result())) == (True, 6)
