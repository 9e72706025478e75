"""Each change of hooks is one release, and their kind puts any state back."""

import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ActorKind, AuthEvent, Organisation
from accounts.scopes import Scope
from core.errors import ConflictError, LimitExceededError, NotFoundError
from core.http.origin import Actor, Origin
from hooks.flows.find_callable_hook import find_callable_hook
from hooks.flows.hooks import (
    delete_hook,
    delete_hooks,
    issue_hook,
    pin_hook,
    rotate_call_token,
    switch_hooks,
    update_hook,
)
from hooks.flows.saving import KIND
from hooks.flows.senders import set_sender, set_signing_secret
from hooks.models import Hook
from hooks.releases import state_of
from jobs.models import RunLimits
from scripts_engine.models import Release, ReleaseChange, Script, ScriptVersion
from scripts_engine.models.release import ReleaseQuerySet
from scripts_engine.releases.kinds import Kind, State, kind_named
from scripts_engine.releases.recording import releasing
from tests.factories import make_hook, make_organisation, make_script

pytestmark = pytest.mark.django_db

ALICE = Origin(actor=Actor(ActorKind.COMMAND, "alice", "alice"))
BOB = Origin(actor=Actor(ActorKind.COMMAND, "bob", "bob"))


@pytest.fixture
def kind() -> Kind:
    return kind_named(KIND)


def publish(script: Script, source: str = "return 1") -> ScriptVersion:
    """A version that was published and is not live."""
    number = script.versions.count() + 1
    return ScriptVersion.objects.create(
        script=script, number=number, source=source, published_at=timezone.now()
    )


def releases() -> ReleaseQuerySet:
    """Those of hooks."""
    return Release.objects.filter(changes__kind=KIND).distinct()


def changes() -> list[tuple[str, str, str]]:
    """Of all releases, oldest first."""
    rows = ReleaseChange.objects.filter(kind=KIND).order_by("release__number", "place")
    return list(rows.values_list("kind", "action", "name"))


def put(kind: Kind, organisation: Organisation, states: Mapping[uuid.UUID, State | None]) -> Any:
    with releasing(organisation.pk, ALICE) as watched:
        watched.watch(kind, states)
        return kind.put(organisation, states, origin=ALICE)


def test_each_change_of_a_hook_is_a_release(script: Script) -> None:
    hook, _ = issue_hook(script, name="shop", origin=ALICE)
    update_hook(hook, name="store", origin=ALICE)
    update_hook(hook, calls_per_minute=60, origin=BOB)
    set_sender(hook, sender="github", origin=BOB)
    pin_hook(hook, publish(script), origin=BOB)
    delete_hook(hook, origin=BOB)

    assert changes() == [
        ("Hook", "Create", "shop"),
        ("Hook", "Rename", "store"),
        ("Hook", "Update", "store"),
        ("Hook", "Update", "store"),
        ("Hook", "Update", "store"),
        ("Hook", "Delete", "store"),
    ]
    actors = releases().order_by("number").values_list("actor_label", flat=True)
    assert list(actors) == ["alice"] * 2 + ["bob"] * 4


def test_a_change_that_changes_nothing_is_no_release_and_no_revision(script: Script) -> None:
    hook, _ = issue_hook(script, name="shop", calls_per_minute=60)

    update_hook(hook, name="shop", calls_per_minute=60, is_enabled=True)

    hook.refresh_from_db()
    assert hook.revision == 1
    assert releases().count() == 1


def test_secrets_are_no_release_and_stand_in_none(script: Script) -> None:
    hook, call_token = issue_hook(script, name="shop")
    set_sender(hook, sender="meta")
    rotate_call_token(hook)
    set_signing_secret(hook, "s3cret-s3cret-s3cret")

    assert releases().count() == 2
    hook.refresh_from_db()
    kept = str(list(ReleaseChange.objects.values_list("before", "after")))
    assert call_token not in kept
    assert hook.digest not in kept
    assert "s3cret" not in kept
    assert "erify" not in kept


def test_several_hooks_are_switched_and_deleted_as_one_release_of_each_organisation(
    script: Script,
) -> None:
    theirs = make_script(make_organisation("Globex"))
    hooks = [make_hook(script, "a").hook, make_hook(script, "b").hook, make_hook(theirs).hook]

    switch_hooks(hooks, is_enabled=False)
    delete_hooks(hooks)

    of_acme = releases().of_organisation(script.organisation)
    assert [release.changes.count() for release in of_acme] == [2, 2, 1, 1]
    assert releases().of_organisation(theirs.organisation).count() == 3
    assert not Hook.objects.existing().exists()


# --- Names ----------------------------------------------------------------------------------------


def test_a_hook_without_a_name_gets_a_free_one(script: Script) -> None:
    names = [issue_hook(script).hook.name for _ in range(3)]

    assert names == ["Hook", "Hook 2", "Hook 3"]


@pytest.mark.parametrize("name", ["shop", "SHOP", " Shop "])
def test_a_name_of_another_hook_of_the_script_is_refused(script: Script, name: str) -> None:
    make_hook(script, "shop")
    other = make_hook(script, "other").hook
    before = releases().count(), AuthEvent.objects.count()

    with pytest.raises(ValidationError) as created:
        issue_hook(script, name=name)
    with pytest.raises(ValidationError) as renamed:
        update_hook(other, name=name)

    assert list(created.value.error_dict) == list(renamed.value.error_dict) == ["name"]
    assert sorted(Hook.objects.values_list("name", flat=True)) == ["other", "shop"]
    assert (releases().count(), AuthEvent.objects.count()) == before


def test_names_are_free_at_other_scripts_and_after_deletion(script: Script) -> None:
    hook = make_hook(script, "shop").hook
    elsewhere = make_hook(make_script(script.organisation, name="other"), "shop").hook
    delete_hook(hook)

    assert issue_hook(script, name="Shop").hook.name == "Shop"
    assert elsewhere.name == "shop"


@pytest.mark.parametrize("name", ["a" * 101, "a\nb", "\0", "\ud800"])
def test_a_name_that_is_too_long_or_has_control_characters_is_refused(
    script: Script, name: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        issue_hook(script, name=name)

    assert list(refused.value.error_dict) == ["name"]
    assert not Hook.objects.exists()


# --- Revisions ------------------------------------------------------------------------------------


def test_a_revision_counts_changes_and_names_who_made_the_last(script: Script) -> None:
    hook, _ = issue_hook(script, name="shop", origin=ALICE)
    assert (hook.revision, hook.revised_by) == (1, "alice")

    changed = update_hook(hook, burst=3, origin=BOB, expected_revision=1)

    assert (changed.revision, changed.revised_by) == (2, "bob")


def test_a_hook_that_has_moved_on_is_a_conflict_with_who_and_when(script: Script) -> None:
    hook, _ = issue_hook(script, name="shop")
    moved = update_hook(hook, burst=3, origin=BOB)
    before = state_of(moved)

    with pytest.raises(ConflictError) as updated:
        update_hook(hook, burst=4, expected_revision=1)
    with pytest.raises(ConflictError):
        set_sender(hook, sender="github", expected_revision=1)
    with pytest.raises(ConflictError):
        pin_hook(hook, script.current_version, expected_revision=1)

    assert updated.value.extensions["by"] == "bob"
    assert updated.value.extensions["at"] == moved.revised_at.isoformat()
    hook.refresh_from_db()
    assert state_of(hook) == before
    assert releases().count() == 2


def test_a_hook_that_was_deleted_meanwhile_is_not_changed(script: Script) -> None:
    hook = make_hook(script).hook
    delete_hook(hook)

    with pytest.raises(NotFoundError):
        update_hook(hook, name="again")

    hook.refresh_from_db()
    assert hook.name == "shop"


# --- Libraries ------------------------------------------------------------------------------------


def test_a_library_has_no_hooks(script: Script) -> None:
    Script.objects.filter(pk=script.pk).update(is_library=True)

    with pytest.raises(ValidationError) as refused:
        issue_hook(script, name="shop")

    assert list(refused.value.error_dict) == ["script"]
    assert not Hook.objects.exists()
    assert not releases().exists()


# --- The kind -------------------------------------------------------------------------------------


def test_a_state_has_all_rules_by_their_names_in_graphql(script: Script, kind: Kind) -> None:
    version = publish(script)
    hook, _ = issue_hook(script, name="shop", reply_mode="accepted", accepted_status=204)
    options = {"header": "X-Signature", "algorithm": "sha512"}
    set_sender(hook, sender="hmac", hmac=options)
    update_hook(hook, idempotency="none", allowed_networks=["192.0.2.1"], calls_per_minute=60)
    pin_hook(hook, version)

    assert kind.states(script.organisation, [hook.pk]) == {
        hook.pk: {
            "script": str(script.pk),
            "name": "shop",
            "enabled": True,
            "sender": "hmac",
            "hmac": {
                "header": "X-Signature",
                "prefix": "",
                "algorithm": "Sha512",
                "encoding": "Hex",
                "template": "{body}",
                "timestampHeader": None,
                "idHeader": None,
                "secretEncoding": "Text",
            },
            "pinned": str(version.pk),
            "allowedNetworks": ["192.0.2.1/32"],
            "methods": ["POST"],
            "allowPath": None,
            "allowedOrigins": None,
            "maxBodyBytes": None,
            "toleranceSeconds": None,
            "signedUrl": None,
            "idempotency": "None",
            "idempotencyWindowSeconds": None,
            "eventIdPointers": None,
            "callsPerMinute": 60,
            "burst": None,
            "maxConcurrentRuns": None,
            "replyMode": "Accepted",
            "acceptedStatus": 204,
            "maxAttempts": None,
        }
    }
    assert kind.version_of(state_of(pin_hook(hook, version))) == version.pk


def test_states_are_of_one_organisation_and_of_hooks_that_exist(script: Script, kind: Kind) -> None:
    theirs = make_hook(make_script(make_organisation("Globex"))).hook
    kept, deleted = make_hook(script, "kept").hook, make_hook(script, "deleted").hook
    delete_hook(deleted)
    ids = [theirs.pk, kept.pk, deleted.pk, uuid.uuid4()]

    assert set(kind.states(script.organisation, ids)) == {kept.pk}
    assert set(kind.states(script.organisation, ids, lock=True)) == {kept.pk}
    assert kind.of_scripts(script.organisation, [script.pk]) == {kept.pk}
    assert kind.of_scripts(script.organisation, [theirs.script_id]) == set()
    assert kind.scope_of(None, state_of(kept)) is Scope.WRITE_HOOKS


def test_each_change_is_put_back(script: Script, kind: Kind) -> None:
    hook, call_token = issue_hook(script, name="shop", max_attempts=3)
    at_first = state_of(hook)
    version = publish(script)
    update_hook(hook, name="store", is_enabled=False, max_attempts=5, burst=2)
    set_sender(hook, sender="github")
    pin_hook(hook, version)
    later = state_of(Hook.objects.get())

    put(kind, script.organisation, {hook.pk: at_first})
    assert state_of(Hook.objects.get()) == at_first
    assert RunLimits.objects.get(pk=hook.pk).max_attempts == 3
    assert RunLimits.objects.get(pk=hook.pk).version_id is None

    put(kind, script.organisation, {hook.pk: later})
    assert state_of(Hook.objects.get()) == later
    assert RunLimits.objects.get(pk=hook.pk).version_id == version.pk

    put(kind, script.organisation, {hook.pk: None})
    assert kind.states(script.organisation, [hook.pk]) == {}

    put(kind, script.organisation, {hook.pk: at_first})
    found = find_callable_hook(script.organisation_id, script.pk, call_token)
    assert found is not None
    assert found.id == hook.pk


def test_rules_that_are_reset_are_null_in_the_database(script: Script, kind: Kind) -> None:
    hook, _ = issue_hook(script, name="shop", allowed_networks=["192.0.2.1"], methods=["POST"])
    state = state_of(hook) | {"allowedNetworks": None, "methods": None}

    put(kind, script.organisation, {hook.pk: state})

    unset = Hook.objects.filter(allowed_networks__isnull=True, methods__isnull=True)
    assert unset.filter(hmac__isnull=True, event_id_pointers__isnull=True).exists()


def test_a_deleted_hook_comes_back_with_its_signing_secret(script: Script, kind: Kind) -> None:
    hook, _ = issue_hook(script, name="shop")
    set_sender(hook, sender="github")
    secret = set_signing_secret(hook, "s3cret-s3cret-s3cret")
    state = state_of(Hook.objects.get())
    delete_hook(hook)

    issued = put(kind, script.organisation, {hook.pk: state})

    hook.refresh_from_db()
    assert hook.signing_secret == secret
    assert issued == []


def test_a_new_hook_gets_a_call_token_that_is_returned_once(script: Script, kind: Kind) -> None:
    hook_id = uuid.uuid4()
    state = {"script": str(script.pk), "name": "shop", "callsPerMinute": 60}

    ((object_id, call_token),) = put(kind, script.organisation, {hook_id: state})

    assert object_id == hook_id
    found = find_callable_hook(script.organisation_id, script.pk, call_token)
    assert found is not None
    assert found.rules is not None
    assert found.rules.calls_per_minute == 60


def test_names_are_swapped_in_one_release(script: Script, kind: Kind) -> None:
    first, second = make_hook(script, "a").hook, make_hook(script, "b").hook
    swapped = {
        first.pk: state_of(first) | {"name": "b"},
        second.pk: state_of(second) | {"name": "a"},
    }

    put(kind, script.organisation, swapped)

    first.refresh_from_db()
    assert (first.name, first.name_key) == ("b", "b")
    with pytest.raises(ValidationError):
        issue_hook(script, name="A")


def test_names_go_from_hook_to_hook_in_one_release(script: Script, kind: Kind) -> None:
    first, second, third = (make_hook(script, name).hook for name in "abc")
    new = {"script": str(script.pk), "name": "c"}
    moved: dict[uuid.UUID, State | None] = {
        first.pk: state_of(first) | {"name": "b"},
        second.pk: None,
        third.pk: None,
        uuid.uuid4(): new,
    }

    put(kind, script.organisation, moved)

    existing = Hook.objects.existing().order_by("name")
    assert list(existing.values_list("name", "name_key")) == [("b", "b"), ("c", "c")]
    back: dict[uuid.UUID, State | None] = {
        third.pk: None,
        second.pk: state_of(second),
        first.pk: state_of(first),
    }
    put(kind, script.organisation, back)
    assert sorted(existing.values_list("name", flat=True)) == ["a", "b", "c"]


def test_a_name_of_a_hook_that_keeps_it_is_refused(script: Script, kind: Kind) -> None:
    first, second = make_hook(script, "a").hook, make_hook(script, "b").hook
    states: dict[uuid.UUID, State | None] = {
        first.pk: state_of(first) | {"name": "B"},
        second.pk: state_of(second) | {"burst": 2},
    }

    with pytest.raises(ValidationError, match="There is one named"):
        put(kind, script.organisation, states)

    assert sorted(Hook.objects.values_list("name", flat=True)) == ["a", "b"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Taken"},
        {"name": ""},
        {"name": 7},
        {"enabled": 1},
        {"sender": "nobody"},
        {"sender": "hmac"},
        {"hmac": {"header": "X"}},
        {"sender": "hmac", "hmac": {"header": "X", "algorithm": "Md5"}},
        {"sender": "hmac", "hmac": {"header": ["X"]}},
        {"pinned": "version 7"},
        {"pinned": str(uuid.uuid4())},
        {"callsPerMinute": 0},
        {"callsPerMinute": True},
        {"callsPerMinute": "60"},
        {"methods": []},
        {"methods": "POST"},
        {"methods": ["HEAD"]},
        {"methods": [["POST"]]},
        {"idempotency": "event-id"},
        {"idempotency": "EventId"},
        {"eventIdPointers": ["/id"]},
        {"allowedNetworks": ["everywhere"]},
        {"maxBodyBytes": 2**40},
        {"script": str(uuid.uuid4())},
        {"script": "echo"},
        {"script": None},
    ],
)
def test_a_wrong_state_is_refused_with_the_hooks_name_and_changes_nothing(
    script: Script, kind: Kind, wrong: dict[str, Any]
) -> None:
    make_hook(script, "taken")
    hook = make_hook(script, "shop").hook
    state = state_of(hook) | wrong
    other = {"script": str(script.pk), "name": "other"}
    before = releases().count()

    with pytest.raises(ValidationError) as refused:
        put(kind, script.organisation, {uuid.uuid4(): other, hook.pk: state})
    with pytest.raises(ValidationError):
        put(kind, script.organisation, {uuid.uuid4(): state})

    assert all(message.startswith("Hook “") for message in refused.value.messages)
    assert Hook.objects.count() == 2
    assert state_of(Hook.objects.get(pk=hook.pk)) == state_of(hook)
    assert releases().count() == before


def test_hooks_over_the_limit_are_refused_together(
    script: Script, kind: Kind, settings: Any
) -> None:
    settings.HOOKS_PER_ORGANISATION = 2
    make_hook(script, "first")
    new = {uuid.uuid4(): {"script": str(script.pk), "name": name} for name in ("a", "b")}

    with pytest.raises(LimitExceededError):
        put(kind, script.organisation, new)

    assert Hook.objects.count() == 1


def test_a_hundred_hooks_take_as_many_statements_as_ten(script: Script, kind: Kind) -> None:
    hooks = [make_hook(script, f"hook {number}").hook for number in range(20)]

    def statements_of(number: int, rate: int) -> int:
        chosen = hooks[:number]
        states = {hook.pk: state_of(hook) | {"callsPerMinute": rate} for hook in chosen}
        with CaptureQueriesContext(connection) as statements:
            put(kind, script.organisation, states)
        return len(statements)

    assert statements_of(20, 60) == statements_of(2, 70)


def test_differences_are_in_words(script: Script, kind: Kind) -> None:
    version = publish(script)
    hook, _ = issue_hook(script, name="shop")
    before = state_of(hook)
    update_hook(hook, calls_per_minute=60, reply_mode="accepted", allowed_networks=["192.0.2.1"])
    set_sender(hook, sender="github")
    after = state_of(pin_hook(hook, version))
    organisation = script.organisation

    assert kind.difference(organisation, before, after).splitlines() == [
        "Sender: anyone -> GitHub",
        "Runs: the live version -> version 2",
        "Networks: every network -> 192.0.2.1/32",
        "Methods: GET, POST -> POST",
        "Calls per minute: unlimited -> 60",
        "Reply: The script's reply -> Accepted: reply as soon as the run is queued",
    ]
    assert kind.difference(organisation, None, before | {"enabled": False}).splitlines() == [
        "Name: shop",
        "Script: echo",
        "Enabled: no",
    ]
    assert "Calls per minute: 60" in kind.difference(organisation, after, None)
