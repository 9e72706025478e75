"""A stranger's guesses do not lock the owner out."""

import uuid
from pathlib import Path
from typing import Any

from django.conf import settings as django_settings
from django.core import mail

from accounts.flows.check_pin import check_pin
from accounts.flows.notices import send_new_device_notice
from accounts.flows.revoke_device import revoke_device
from accounts.messages.channels import SendVia
from accounts.models import PinFailures, User
from core.http.origin import NOWHERE
from tests.factories import deliver_pin, make_device_token, make_pin

OWN, STRANGE = uuid.uuid4(), uuid.uuid4()


def logs_in(user: User, device: uuid.UUID) -> bool:
    pin = make_pin(user)
    return check_pin(email=user.email, pin=pin, device=device, label="", origin=NOWHERE) is not None


def stop_strangers(user: User) -> None:
    make_pin(user)
    PinFailures.objects.filter(bucket=user.email).update(
        failures_today=django_settings.PIN_FAILURES_PER_DAY
    )


def test_a_strangers_failures_do_not_stop_a_known_device(alice: User) -> None:
    make_device_token(alice, OWN)
    stop_strangers(alice)

    assert not logs_in(alice, STRANGE)
    assert logs_in(alice, OWN)


def test_a_known_device_has_its_own_count_and_stop(alice: User) -> None:
    make_device_token(alice, OWN)
    pin = make_pin(alice)
    wrong = f"{(int(pin) + 1) % 10**6:06d}"
    check_pin(email=alice.email, pin=wrong, device=OWN, label="", origin=NOWHERE)
    PinFailures.objects.filter(bucket__contains=str(OWN)).update(
        failures_today=django_settings.PIN_FAILURES_PER_DAY
    )

    assert not logs_in(alice, OWN)
    assert logs_in(alice, STRANGE)


def test_a_revoked_device_is_known_no_more(alice: User) -> None:
    issued = make_device_token(alice, OWN)
    revoke_device(issued.device_token)
    stop_strangers(alice)

    assert not logs_in(alice, OWN)


def test_unlocking_frees_every_bucket_of_the_address(alice: User) -> None:
    make_device_token(alice, OWN)
    stop_strangers(alice)
    PinFailures.objects.unlock(alice.email)

    assert logs_in(alice, STRANGE)


def test_the_notice_names_device_address_time_and_advice(alice: User) -> None:
    issued = make_device_token(alice, OWN, label="kitchen tablet")
    send_new_device_notice.call(str(issued.device_token.pk), "192.0.2.7")

    [message] = mail.outbox
    body = str(message.body)
    assert message.to == [alice.delivery_email]
    assert "kitchen tablet" in body
    assert "192.0.2.7" in body
    assert f"{issued.device_token.created_at:%Y-%m-%d %H:%M}" in body
    assert f"remove the device (id {issued.device_token.pk})" in body
    assert issued.token not in body


def test_sms_beyond_the_daily_count_of_a_number_go_by_mail(
    alice: User, settings: Any, tmp_path: Path
) -> None:
    settings.SMS_URL, settings.OUTBOX_DIR = None, tmp_path
    for _ in range(6):
        deliver_pin(alice.email, SendVia.SMS)

    assert len(list(tmp_path.iterdir())) == 5
    assert len(mail.outbox) == 1


def test_sms_to_other_countries_go_by_mail(
    alice: User, charlie: User, settings: Any, tmp_path: Path
) -> None:
    settings.SMS_URL, settings.OUTBOX_DIR = None, tmp_path
    settings.SMS_COUNTRIES = frozenset({"DE"})
    deliver_pin(alice.email, SendVia.SMS)
    deliver_pin(charlie.email, SendVia.SMS)

    assert len(list(tmp_path.iterdir())) == 1
    assert [message.to for message in mail.outbox] == [[charlie.email]]


def test_sms_beyond_the_days_budget_go_by_mail(
    alice: User, charlie: User, settings: Any, tmp_path: Path
) -> None:
    settings.SMS_URL, settings.OUTBOX_DIR = None, tmp_path
    settings.SMS_DAILY_BUDGET = 1
    deliver_pin(alice.email, SendVia.SMS)
    deliver_pin(charlie.email, SendVia.BOTH)

    assert len(list(tmp_path.iterdir())) == 1
    assert [message.to for message in mail.outbox] == [[charlie.email]]
