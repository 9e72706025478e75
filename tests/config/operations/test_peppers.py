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
from hooks.call_sender import open_secret, open_verify_token
from hooks.flows.hooks import rotate_call_token
from hooks.flows.senders import set_sender, set_signing_secret
from hooks.models import Hook, RefusedCall, SigningSecret
from hooks.models.refused_call import content_of
from jobs.queue.claim import Turns, claim_due_runs
from jobs.queue.enqueue import QueuedWork, enqueue
from jobs.queue.finish import finish
from jobs.queue.run_claimed import run_claimed
from scripts_engine.models import Run, Secret, Trigger
from scripts_engine.secrets import context_of, decrypt, set_secret
from tests import factories
from tests.working_queue import work_all, work_queue

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

    assert (
        "1: 1 API keys, 0 device tokens, 0 hooks, 1 secrets, 0 queued calls, "
        "0 signing secrets, 0 kept call tokens, 0 refused calls  (not configured"
    ) in capsys.readouterr().out
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


# --- Secrets of hooks -----------------------------------------------------------------------------


@pytest.fixture
def hook_under_the_old_one(acme: Organisation, settings: Any) -> Hook:
    """A signing secret, a verify token and a refused call under pepper 1, with 2 in front."""
    hook = factories.make_hook(factories.make_script(acme)).hook
    settings.PEPPERS = {1: OLD}
    set_signing_secret(set_sender(hook, sender="meta"), "hush")
    factories.make_refused_call(hook, b"refused")
    settings.PEPPERS = {2: NEW, 1: OLD}
    return hook


def test_an_old_pepper_is_needed_by_what_hooks_encrypt(
    hook_under_the_old_one: Hook, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("peppers", "--json")

    use = use_of(1, capsys)
    assert (use["signing_secrets"], use["refused_calls"], use["is_needed"]) == (2, 1, True)


def test_what_hooks_encrypt_is_moved_to_the_new_pepper(
    hook_under_the_old_one: Hook, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("peppers", "--move-secrets", "--json")
    use = use_of(1, capsys)
    assert (use["signing_secrets"], use["refused_calls"]) == (0, 0)

    settings.PEPPERS = {2: NEW}
    hook, secret = Hook.objects.get(), SigningSecret.objects.get()
    assert open_secret(hook.pk, bytes(secret.ciphertext)) == "hush"
    assert open_verify_token(hook.pk, bytes(hook.verify_token_ciphertext or b"")) is not None
    content = content_of(RefusedCall.objects.get())
    assert content is not None
    assert content.body == b"refused"


def test_a_signing_secret_of_a_lost_pepper_stops_the_move(
    hook_under_the_old_one: Hook, settings: Any
) -> None:
    settings.PEPPERS = {2: NEW}
    before = bytes(SigningSecret.objects.get().ciphertext)
    with pytest.raises(CommandError, match="pepper 1 is missing"):
        call_command("peppers", "--move-secrets")

    assert bytes(SigningSecret.objects.get().ciphertext) == before


# --- Queued calls ---------------------------------------------------------------------------------

SHOWS_AUTHORIZATION = """
if params.get("attempt") ~= "3" then error("again") end
return params.header("authorization")
"""


@pytest.fixture
def queued_under_the_old_one(acme: Organisation, settings: Any) -> Run:
    """A queued call with a header that its record hides, under pepper 1, with 2 in front."""
    script = factories.make_script(acme, SHOWS_AUTHORIZATION)
    settings.PEPPERS = {1: OLD}
    work = QueuedWork(
        organisation_id=acme.pk,
        script_id=script.pk,
        version_id=script.current_version_id,
        event=factories.event_with(headers=(("Authorization", "Basic hush"),)),
        trigger=Trigger.QUEUE,
    )
    run = Run.objects.get(pk=enqueue(work))
    settings.PEPPERS = {2: NEW, 1: OLD}
    return run


def test_an_old_pepper_is_needed_by_queued_calls(
    queued_under_the_old_one: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("peppers", "--json")

    use = use_of(1, capsys)
    assert (use["queued_calls"], use["is_needed"]) == (1, True)


def test_queued_calls_are_moved_to_the_new_pepper(
    queued_under_the_old_one: Run, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    # The second attempt waits: the payload stands in the first.
    settings.PEPPERS = {1: OLD}
    work_queue()
    settings.PEPPERS = {2: NEW, 1: OLD}
    call_command("peppers", "--move-secrets", "--json")
    assert use_of(1, capsys)["is_needed"] is False

    settings.PEPPERS = {2: NEW}
    *_, last = work_all()
    assert (last.error_message, bytes(last.response_body)) == ("", b"Basic hush")


def test_an_attempt_that_runs_while_its_call_is_moved_brings_no_old_pepper_back(
    queued_under_the_old_one: Run, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    claimed = claim_due_runs(1, Turns()).claimed
    call_command("peppers", "--move-secrets", "--json")
    finish([run_claimed(each) for each in claimed])
    capsys.readouterr()
    call_command("peppers", "--json")
    assert use_of(1, capsys)["is_needed"] is False

    settings.PEPPERS = {2: NEW}
    *_, last = work_all()
    assert (last.error_message, bytes(last.response_body)) == ("", b"Basic hush")
