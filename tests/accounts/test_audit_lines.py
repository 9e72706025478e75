"""AUDIT_LOG=stdout: each committed event is one line of JSON."""

import json
from typing import Any

import pytest
from django.db import transaction

from accounts.audit import command_origin
from accounts.flows.api_keys import issue_api_key, revoke_api_keys
from accounts.models import AuthEvent, Organisation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def _written(settings: Any) -> None:
    settings.IS_AUDIT_WRITTEN_TO_STDOUT = True


@pytest.mark.usefixtures("_written")
def test_each_event_is_one_line(acme: Organisation, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    keys = [issue_api_key(acme, name=f"key {number}").api_key for number in range(2)]

    revoke_api_keys(keys)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    events = AuthEvent.objects.filter(organisation=acme).order_by("id")
    assert [(line["audit"], line["id"]) for line in lines] == [
        (event.kind, str(event.pk)) for event in events
    ]
    assert [line["audit"] for line in lines] == ["api-key.issued"] * 2 + ["api-key.revoked"] * 2
    assert lines[0]["organisation"] == str(acme.pk)
    assert lines[0]["reason"] == "All"
    assert lines[0]["subjectLabel"] == "key 0"


@pytest.mark.usefixtures("_written")
def test_what_a_command_does_is_not_in_its_answer(
    acme: Organisation, capsys: pytest.CaptureFixture[str]
) -> None:
    issue_api_key(acme, name="k", origin=command_origin("create_api_key"))

    written = capsys.readouterr()
    assert "api-key.issued" not in written.out
    assert json.loads(written.err.splitlines()[-1])["actorKind"] == "command"


@pytest.mark.usefixtures("_written")
def test_what_is_rolled_back_is_not_written(
    acme: Organisation, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    with transaction.atomic():
        issue_api_key(acme, name="k")
        transaction.set_rollback(True)

    assert capsys.readouterr().out == ""


def test_it_is_off_by_default(acme: Organisation, capsys: pytest.CaptureFixture[str]) -> None:
    issue_api_key(acme, name="k")

    assert capsys.readouterr().out == ""
