"""One row of each model, all of one organisation, and all recognisable by its name."""

from typing import Any

from accounts.flows.organisations import add_member
from accounts.models import (
    ApiKey,
    AuthEvent,
    AuthEventKind,
    DeviceToken,
    Invitation,
    Organisation,
    PinChallenge,
    PinFailures,
    User,
)
from scripts_engine.flows.secrets import set_secret
from scripts_engine.models import Hook, Run, Script, ScriptVersion, Secret, StoredValue
from sessions_api.models import Session
from tests import factories
from tests.admin import pages


def one_of_each(organisation: Organisation) -> dict[type, Any]:
    """By model; there must be no session of the organisation's keys yet."""
    name = organisation.name
    user = factories.make_user(
        organisation,
        f"{name.lower()}-member@example.org",
        name=f"{name} member",
        phone="+15550100199",
    )
    key = factories.make_api_key(organisation, f"{name} key")
    script = factories.make_script(organisation, f"return '{name} source'", f"{name} script")
    hook = factories.make_hook(script, f"{name} hook").hook
    device = factories.make_device_token(user, label=f"{name} phone").device_token
    factories.make_pin(user)
    factories.open_session(
        factories.api_key_login(key, email=f"{name.lower()}-program@example.org")
    )
    guest = User.objects.create_user(f"{name.lower()}-guest@example.org")
    return {
        Organisation: organisation,
        Invitation: add_member(organisation, email=guest.email),
        User: user,
        ApiKey: key.api_key,
        AuthEvent: AuthEvent.objects.of_organisation(organisation).get(
            kind=AuthEventKind.API_KEY_ISSUED
        ),
        DeviceToken: device,
        Session: Session.objects.get(api_key=key.api_key),
        Script: script,
        ScriptVersion: script.current_version,
        Hook: hook,
        Run: pages.run_of(hook, body=f"{name} payload".encode()),
        Secret: set_secret(organisation, name=f"{name.upper()}_KEY", value=f"{name} value"),
        StoredValue: StoredValue.objects.create(
            organisation=organisation, key=f"{name.lower()} key".encode(), value=f'"{name} value"'
        ),
        PinChallenge: PinChallenge.objects.open_for(user.email),
        PinFailures: PinFailures.objects.get(bucket=user.email),
    }
