"""Runs inside the server's environment: one command of an operator a line, as JSON."""

import io
import json
import sys

import django


def main() -> None:
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    for line in sys.stdin:
        command = json.loads(line)
        output = io.StringIO()
        if "approve" in command:
            approve(**command["approve"])
        else:
            call_command(*command["arguments"], stdout=output)
        sys.stdout.write(json.dumps(output.getvalue()) + "\n")
        sys.stdout.flush()


def approve(organisation: str, email: str, code: str) -> None:
    """What the page /admin/device/ does when a person approves."""
    from accounts.models import Organisation, User  # noqa: PLC0415
    from core.http.origin import NOWHERE  # noqa: PLC0415
    from sessions_api.device_authorization.flows import approve_login, find_login  # noqa: PLC0415

    person = User.objects.get(email=email)
    person.is_staff = True
    person.save()
    row = find_login(person, code, NOWHERE)
    assert row is not None, code
    approve_login(
        row,
        organisation=Organisation.objects.get(pk=organisation),
        scopes=row.scopes,
        key_name="moonhook-cli",
        days=90,
        by=person,
        origin=NOWHERE,
    )


main()
