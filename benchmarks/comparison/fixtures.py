"""Creates objects to call, with the flows of the Moonhook on the path of imports.

Prints addresses and secrets as JSON; runs in the environment of the server under test.
"""

import argparse
import json
import uuid
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.utils import timezone  # noqa: E402

from accounts import credentials  # noqa: E402
from accounts.flows.api_keys import issue_api_key  # noqa: E402
from accounts.flows.check_pin import check_pin  # noqa: E402
from accounts.flows.organisations import create_organisation  # noqa: E402
from accounts.flows.send_pin import code_to_send  # noqa: E402
from accounts.flows.users import create_user  # noqa: E402
from accounts.models import Organisation, User  # noqa: E402
from benchmarks.comparison.order import SOURCE  # noqa: E402
from core.http.origin import NOWHERE  # noqa: E402
from hooks.flows.hooks import issue_hook  # noqa: E402
from hooks.models import Hook  # noqa: E402
from scripts_engine.flows.scripts import create_script  # noqa: E402
from scripts_engine.runs.spec import NOBODY  # noqa: E402


def make_hook(organisation: Organisation) -> tuple[str, str]:
    """The address of a new hook, and one with a well-formed wrong token."""
    wrong_token = credentials.generate_secret(credentials.SecretKind.CALL_TOKEN)
    hook, call_token = _hook_of(organisation, "Order total", SOURCE)
    return hook.url_with(call_token), hook.url_with(wrong_token)


def make_signed_hook(organisation: Organisation) -> str:
    """The address of a hook that GitHub calls; ``""`` in versions that know no senders."""
    try:
        from benchmarks.comparison.order import SIGNING_SECRET  # noqa: PLC0415
        from hooks.flows.senders import set_sender, set_signing_secret  # noqa: PLC0415
    except ImportError:
        return ""
    hook, call_token = _hook_of(organisation, "Order total, signed", SOURCE)
    set_sender(hook, sender="github")
    set_signing_secret(hook, SIGNING_SECRET)
    return hook.url_with(call_token)


def make_looping_hook() -> str:
    """The address of a hook, of an organisation of its own, whose script does not end."""
    hook, call_token = _hook_of(create_organisation("Loops"), "Endless", "while true do end\n")
    return hook.url_with(call_token)


def _hook_of(organisation: Organisation, name: str, source: str) -> tuple[Hook, str]:
    return issue_hook(
        create_script(organisation, name=name, source=source, author=NOBODY), name="orders"
    )


def api_key_login(organisation: Organisation) -> dict[str, str]:
    issued = issue_api_key(organisation, name="warehouse")
    return {
        "credential": "ApiKey",
        "uid": issued.api_key.key,
        "password": issued.secret,
        "email": "warehouse@example.com",
    }


def device_login(user: User) -> dict[str, str]:
    pin = code_to_send(user.email, user, timezone.now())
    assert pin is not None
    issued = check_pin(
        email=user.email, pin=pin, device=uuid.uuid4(), label="phone", origin=NOWHERE
    )
    assert issued is not None
    return {
        "credential": "Token",
        "uid": str(issued.device_token.pk),
        "password": issued.token,
        "email": user.email,
    }


def await_pin(organisation: Organisation, number: int) -> str:
    """The address of a user who has been sent a code."""
    user = create_user(organisation, email=f"user{number}@example.com")
    code_to_send(user.email, user, timezone.now())
    return user.email


def make(*, tenants: int, users: int) -> dict[str, Any]:
    organisations = [create_organisation(f"Organisation {number + 1}") for number in range(tenants)]
    hooks = [make_hook(organisation) for organisation in organisations]
    home = organisations[0]
    alice = create_user(home, email="alice@example.com", name="Alice")
    return {
        "workers": settings.WEB_WORKERS,
        "threads": settings.WEB_THREADS,
        "hooks": [url for url, _ in hooks],
        "wrong_hook": hooks[0][1],
        "signed_hook": make_signed_hook(home),
        "looping_hook": make_looping_hook(),
        "api_key_logins": [api_key_login(home), api_key_login(home)],
        "device_login": device_login(alice),
        "emails_with_code": [await_pin(home, number) for number in range(users)],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tenants", type=int, default=1)
    parser.add_argument("--users", type=int, default=0)
    arguments = parser.parse_args()
    print(json.dumps(make(tenants=arguments.tenants, users=arguments.users)))


if __name__ == "__main__":
    main()
