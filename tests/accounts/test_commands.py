"""manage.py create_organisation, create_user, create_api_key, createsuperuser."""

import json
import uuid
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import ApiKey, Organisation, Role, User


def run(*arguments: str) -> str:
    output = StringIO()
    call_command(*arguments, stdout=output)
    return output.getvalue()


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def test_an_organisation_is_made(db: None) -> None:
    answer = run_json("create_organisation", "Acme")

    assert answer == {"id": str(Organisation.objects.get().pk), "name": "Acme"}


def test_people_read_a_line_for_each_value(db: None) -> None:
    organisation = run("create_organisation", "Acme")

    assert organisation == f"id: {Organisation.objects.get().pk}\nname: Acme\n"


def test_a_user_is_made(acme: Organisation) -> None:
    answer = run_json(
        "create_user", "--email", "Dora@example.com", "--organisation", str(acme.pk),
        "--name", "Dora", "--phone", "+491701234567", "--role", "administrator",
    )  # fmt: skip

    dora = User.objects.get()
    assert answer == {"id": str(dora.pk), "email": "dora@example.com"}
    assert (dora.name, dora.phone) == ("Dora", "+491701234567")
    assert dora.memberships.get().role == Role.ADMINISTRATOR


def test_an_api_key_is_issued(acme: Organisation) -> None:
    answer = run_json("create_api_key", "--organisation", str(acme.pk), "--name", "till")

    key = ApiKey.objects.get()
    assert answer.pop("secret").startswith("mhs_")
    assert answer == {
        "id": str(key.pk),
        "key": key.key,
        "organisation": {"id": str(acme.pk), "name": "Acme"},
        "scopes": ["All"],
    }


@pytest.mark.parametrize(
    ("given", "scopes"),
    [
        ("read-only", ["ReadScripts"]),
        ("ReadKeys, ReadAudit", ["ReadKeys", "ReadAudit"]),
        ("ReadAudit ReadKeys", ["ReadKeys", "ReadAudit"]),
    ],
)
def test_an_api_key_is_issued_with_scopes(
    acme: Organisation, given: str, scopes: list[str]
) -> None:
    answer = run_json(
        "create_api_key", "--organisation", str(acme.pk), "--name", "till", "--scopes", given
    )

    assert answer["scopes"] == ApiKey.objects.get().scopes == scopes


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("create_organisation", ""), "name:"),
        (("create_organisation", "Acme"), "name: There is one named “Acme” already"),
        (("create_organisation", " aCME "), "name: There is one named “aCME” already"),
        (("create_user", "--email", "x", "--organisation", "ACME"), "email:"),
        (("create_user", "--email", "a@b.example", "--organisation", "x"), "no organisation"),
        (("create_api_key", "--organisation", str(uuid.uuid4()), "--name", "x"), "no organisation"),
        (("create_api_key", "--organisation", "ACME", "--name", ""), "name:"),
    ],
)
def test_invalid_input_is_an_error_with_its_reason(
    acme: Organisation, arguments: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(CommandError, match=reason):
        run(*[str(acme.pk) if argument == "ACME" else argument for argument in arguments])

    assert (User.objects.count(), ApiKey.objects.count(), Organisation.objects.count()) == (0, 0, 1)


def test_a_superuser_logs_in_by_email(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "correct horse battery")
    run("createsuperuser", "--noinput", "--email", "Root@example.com")

    root = User.objects.get()
    assert (root.email, root.is_staff, root.is_superuser) == ("root@example.com", True, True)
    assert root.check_password("correct horse battery")
