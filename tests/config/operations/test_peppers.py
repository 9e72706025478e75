"""Retiring a pepper: secrets in use move to the newest one, and a command lists the rest."""

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import credentials
from accounts.flows.api_keys import rotate_api_key
from accounts.models import ApiKey, Organisation
from core.http.origin import NOWHERE
from scripts_engine.encryption import context_of, decrypt
from scripts_engine.flows.hooks import rotate_call_token
from scripts_engine.flows.secrets import set_secret
from scripts_engine.models import Secret
from tests import factories

OLD, NEW = b"o" * 32, b"n" * 32


@pytest.fixture
def acme_under_the_old_one(acme: Organisation, settings: Any) -> Organisation:
    """A key and a secret under pepper 1; then pepper 2 comes in front."""
    settings.PEPPERS = {1: OLD}
    factories.make_api_key(acme)
    set_secret(acme, name="SHOP_KEY", value="hush")
    settings.PEPPERS = {2: NEW, 1: OLD}
    return acme


def use_of(version: int, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    document = json.loads(capsys.readouterr().out)
    [use] = [each for each in document["peppers"] if each["version"] == version]
    found: dict[str, Any] = use
    return found


def test_an_old_pepper_is_needed_by_its_secrets(
    acme_under_the_old_one: Organisation, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("peppers", "--json")

    use = use_of(1, capsys)
    assert (use["api_keys"], use["secrets"], use["is_needed"]) == (1, 1, True)


def test_an_old_pepper_is_needed_until_the_overlap_of_a_rotation_is_over(
    acme_under_the_old_one: Organisation, capsys: pytest.CaptureFixture[str]
) -> None:
    rotate_api_key(ApiKey.objects.get(), overlap_seconds=600, origin=NOWHERE)
    Secret.objects.all().delete()
    call_command("peppers", "--json")
    during = use_of(1, capsys)
    ApiKey.objects.update(previous_valid_until=timezone.now())
    call_command("peppers", "--json")

    assert (during["api_keys"], during["is_needed"]) == (1, True)
    assert use_of(1, capsys)["is_needed"] is False


def test_a_hook_that_is_rotated_with_an_overlap_needs_both_peppers(
    acme: Organisation, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.PEPPERS = {1: OLD}
    hook = factories.make_hook(factories.make_script(acme)).hook
    settings.PEPPERS = {2: NEW, 1: OLD}
    rotate_call_token(hook, overlap_seconds=600)
    call_command("peppers", "--json")

    documents = json.loads(capsys.readouterr().out)["peppers"]
    assert [(use["version"], use["hooks"]) for use in documents] == [(2, 1), (1, 1)]


def test_secrets_are_moved_to_the_new_pepper(
    acme_under_the_old_one: Organisation, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ApiKey.objects.update(revoked_at="2026-01-01T00:00Z")
    call_command("peppers", "--move-secrets", "--json")

    assert use_of(1, capsys)["is_needed"] is False
    settings.PEPPERS = {2: NEW}
    secret = acme_under_the_old_one.secrets.get()
    context = context_of(acme_under_the_old_one.pk, "SHOP_KEY")
    assert decrypt(bytes(secret.ciphertext), context) == b"hush"


def test_the_command_lists_secrets_lost_with_a_pepper(
    acme_under_the_old_one: Organisation, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.PEPPERS = {2: NEW}
    call_command("peppers")

    assert "1: 1 API keys, 0 device tokens, 0 hooks, 1 secrets  (not configured" in (
        capsys.readouterr().out
    )
    with pytest.raises(CommandError, match="pepper 1 is missing"):
        call_command("peppers", "--move-secrets")


def test_a_login_moves_its_key(acme_under_the_old_one: Organisation, settings: Any) -> None:
    issued = factories.make_api_key(acme_under_the_old_one)
    old = credentials.Digest(issued.api_key.digest, issued.api_key.pepper_version)
    settings.PEPPERS = {3: b"3" * 32, 2: NEW, 1: OLD}
    factories.open_session(factories.api_key_login(issued))

    moved = ApiKey.objects.get(pk=issued.api_key.pk)
    assert (old.pepper_version, moved.pepper_version) == (2, 3)


def test_a_pepper_not_yet_in_use_verifies_secrets_of_other_nodes(
    acme: Organisation, settings: Any
) -> None:
    settings.PEPPERS = {2: NEW, 1: OLD}
    issued = factories.make_api_key(acme)
    settings.PEPPERS = {1: OLD, 2: NEW}

    assert factories.open_session(factories.api_key_login(issued))
