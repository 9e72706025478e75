"""Who calls a hook: set, changed and removed, with what depends on it."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts.models import AuthEvent
from hooks.audit_kinds import HookEvent
from hooks.call_sender import open_verify_token
from hooks.flows.hooks import update_hook
from hooks.flows.senders import set_sender, set_signing_secret
from hooks.models import Hook, Idempotency, SigningSecret
from hooks.rules import COLUMNS, rules_in_force, rules_of_call
from tests.factories import make_hook

TIMED = {
    "header": "X-Signature",
    "template": "{timestamp}.{body}",
    "timestampHeader": "X-Time",
}


def stored(hook: Hook) -> Hook:
    return Hook.objects.select_related("script__organisation").get(pk=hook.pk)


def test_a_hook_without_rules_has_the_defaults(hook: Hook) -> None:
    rules = rules_in_force(hook)

    assert rules.sender is None
    assert list(rules.methods) == ["GET", "POST"]
    assert (rules.max_body_bytes, rules.idempotency) == (1_048_576, Idempotency.NONE)
    assert (rules.idempotency_window_seconds, rules.burst) == (86_400, 0)
    assert rules.accepted_status == 202


def test_a_hook_gets_a_sender_and_answers_post_alone(hook: Hook) -> None:
    changed = set_sender(hook, sender="github")

    assert (stored(hook).sender, stored(hook).methods) == ("github", ["POST"])
    assert rules_in_force(changed).idempotency == Idempotency.NONE
    event = AuthEvent.objects.get(kind=HookEvent.SENDER_SET)
    assert (event.reason, event.subject_id) == ("github", str(hook.pk))


def test_methods_that_were_chosen_stay(hook: Hook) -> None:
    update_hook(hook, methods=["GET", "POST"])
    set_sender(hook, sender="github")

    assert stored(hook).methods == ["GET", "POST"]


@pytest.mark.parametrize("sender", ["GitHub", "", "nobody", "github\0"])
def test_an_unknown_sender_is_refused(hook: Hook, sender: str) -> None:
    with pytest.raises(ValidationError) as refused:
        set_sender(hook, sender=sender)

    assert list(refused.value.message_dict) == ["sender"]
    assert stored(hook).sender == ""
    assert not AuthEvent.objects.filter(kind=HookEvent.SENDER_SET).exists()


def test_options_of_the_sender_hmac_are_stored_with_their_defaults(hook: Hook) -> None:
    set_sender(hook, sender="hmac", hmac=TIMED)

    assert stored(hook).hmac == {
        "header": "X-Signature",
        "algorithm": "sha256",
        "encoding": "hex",
        "prefix": "",
        "template": "{timestamp}.{body}",
        "timestampHeader": "X-Time",
        "idHeader": None,
        "secretEncoding": "text",
    }


@pytest.mark.parametrize(
    ("option", "field"),
    [
        ({"header": ""}, "header"),
        ({"header": "a b"}, "header"),
        ({"algorithm": "md5"}, "algorithm"),
        ({"encoding": "base32"}, "encoding"),
        ({"prefix": "é"}, "prefix"),
        ({"template": "{timestamp}"}, "template"),
        ({"template": "{body}{body}"}, "template"),
        ({"template": "{body}{secret}"}, "template"),
        ({"timestampHeader": None}, "timestamp_header"),
        ({"timestampHeader": "a b"}, "timestamp_header"),
        ({"template": "{id}.{body}"}, "id_header"),
        ({"secretEncoding": "rot13"}, "secret_encoding"),
    ],
)
def test_a_wrong_option_is_named_without_its_value(
    hook: Hook, option: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        set_sender(hook, sender="hmac", hmac={**TIMED, **option})

    assert list(refused.value.message_dict) == [field]
    assert stored(hook).sender == ""


@pytest.mark.parametrize(("sender", "hmac"), [("hmac", None), ("github", TIMED), (None, TIMED)])
def test_options_belong_to_the_sender_hmac_alone(hook: Hook, sender: str, hmac: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        set_sender(hook, sender=sender, hmac=hmac)

    assert list(refused.value.message_dict) == ["hmac"]


def test_another_sender_resets_what_is_not_its_own(hook: Hook) -> None:
    set_sender(hook, sender="hmac", hmac=TIMED)
    update_hook(hook, event_id_pointers=["/id"], idempotency="event-id", tolerance_seconds=60)
    set_sender(hook, sender="github")

    changed = stored(hook)
    assert (changed.hmac, changed.event_id_pointers, changed.idempotency) == (None, None, "")
    assert changed.tolerance_seconds == 60


def test_other_options_of_the_same_sender_keep_its_pointers(hook: Hook) -> None:
    set_sender(hook, sender="hmac", hmac=TIMED)
    update_hook(hook, event_id_pointers=["/id"], idempotency="event-id")
    set_sender(hook, sender="hmac", hmac={"header": "X-Other"})

    changed = stored(hook)
    assert (changed.event_id_pointers, changed.idempotency) == (["/id"], "event-id")


def test_body_hashes_end_where_the_sender_counts_attempts_in_the_body(hook: Hook) -> None:
    set_sender(hook, sender="github")
    update_hook(hook, idempotency="body-hash")
    set_sender(hook, sender="hubspot")

    assert stored(hook).idempotency == ""


def test_secrets_that_do_not_fit_the_new_sender_end(hook: Hook) -> None:
    set_sender(hook, sender="github")
    set_signing_secret(hook, "hush")
    set_sender(hook, sender="discord")

    assert not SigningSecret.objects.live().exists()
    assert stored(hook).signing_secret is None


def test_secrets_that_fit_the_new_sender_stay(hook: Hook) -> None:
    set_sender(hook, sender="github")
    secret = set_signing_secret(hook, "hush")
    set_sender(hook, sender="gitlab-token")

    assert stored(hook).signing_secret == secret
    assert secret.is_live


def test_meta_gets_a_verify_token_of_its_own_that_stays(hook: Hook) -> None:
    set_sender(hook, sender="meta")
    first = bytes(stored(hook).verify_token_ciphertext or b"")
    set_sender(hook, sender="meta")

    token = open_verify_token(hook.pk, first)
    assert token is not None
    assert len(token) == 32
    assert bytes(stored(hook).verify_token_ciphertext or b"") == first


def test_another_sender_takes_the_verify_token_away(hook: Hook) -> None:
    set_sender(hook, sender="meta")
    set_sender(hook, sender="github")

    assert stored(hook).verify_token_ciphertext is None


def test_a_removed_sender_takes_everything_of_it_along(hook: Hook) -> None:
    set_sender(hook, sender="standard-webhooks")
    set_signing_secret(hook, "whsec_" + "QUJD" * 8)
    update_hook(
        hook,
        event_id_pointers=["/id"],
        idempotency="event-id",
        signed_url="https://shop.example/in",
        tolerance_seconds=60,
        calls_per_minute=10,
    )
    set_sender(hook, sender=None)

    changed = stored(hook)
    assert (changed.sender, changed.event_id_pointers, changed.idempotency) == ("", None, "")
    assert (changed.signed_url, changed.tolerance_seconds) == ("", None)
    assert (changed.signing_secret, SigningSecret.objects.live().count()) == (None, 0)
    assert changed.calls_per_minute == 10
    assert AuthEvent.objects.filter(kind=HookEvent.SENDER_REMOVED).count() == 1


def test_removing_a_sender_that_is_not_set_leaves_no_event(hook: Hook) -> None:
    set_sender(hook, sender=None)

    assert not AuthEvent.objects.filter(kind=HookEvent.SENDER_REMOVED).exists()


# --- Limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [
        ("allowed_networks", ["192.0.2.1", " 2001:DB8::/32"], ["192.0.2.1/32", "2001:db8::/32"]),
        ("methods", ["POST", "GET", "POST"], ["GET", "POST"]),
        ("methods", ["GET"], ["GET"]),
        ("max_body_bytes", 1, 1),
        ("max_body_bytes", 1_048_576, 1_048_576),
        ("tolerance_seconds", 10, 10),
        ("tolerance_seconds", 86_400, 86_400),
        ("event_id_pointers", ["/a/0", "/b~1c"], ["/a/0", "/b~1c"]),
        ("signed_url", " http://shop.example:8080/in?a=%20 ", "http://shop.example:8080/in?a=%20"),
        ("idempotency", "event-id", "event-id"),
        ("idempotency", "body-hash", "body-hash"),
        ("idempotency", "none", "none"),
        ("idempotency_window_seconds", 604_800, 604_800),
        ("calls_per_minute", 1, 1),
        ("burst", 1, 1),
        ("max_concurrent_runs", 1, 1),
    ],
)
def test_a_limit_is_set_and_reset(hook: Hook, field: str, value: Any, kept: Any) -> None:
    set_sender(hook, sender="standard-webhooks")
    fresh = getattr(make_hook(hook.script).hook, field)

    update_hook(stored(hook), **{field: value})
    assert getattr(stored(hook), field) == kept
    event = AuthEvent.objects.get(kind=HookEvent.HOOK_LIMITS_CHANGED)
    assert event.reason == field

    update_hook(stored(hook), **{field: None})
    assert getattr(stored(hook), field) == fresh


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("allowed_networks", ["192.0.2.1/24"]),
        ("allowed_networks", ["somewhere"]),
        ("allowed_networks", [f"192.0.2.{number}" for number in range(65)]),
        ("methods", []),
        ("methods", ["HEAD"]),
        ("methods", ["post"]),
        ("max_body_bytes", 0),
        ("max_body_bytes", -1),
        ("max_body_bytes", 1_048_577),
        ("tolerance_seconds", 0),
        ("tolerance_seconds", 9),
        ("tolerance_seconds", 86_401),
        ("event_id_pointers", ["id"]),
        ("event_id_pointers", ["/a", "/b", "/c", "/d"]),
        ("signed_url", "shop.example/in"),
        ("signed_url", "ftp://shop.example/in"),
        ("signed_url", "https:///in"),
        ("signed_url", "https://shop.example/in#part"),
        ("signed_url", "https://shop.example/a b"),
        ("signed_url", "https://shop.example:99999/"),
        ("signed_url", "https://shop.example/" + "x" * 2000),
        ("idempotency", "sometimes"),
        ("idempotency_window_seconds", 0),
        ("idempotency_window_seconds", 604_801),
        ("calls_per_minute", 0),
        ("calls_per_minute", 1_000_001),
        ("burst", 0),
        ("max_concurrent_runs", 0),
        ("max_concurrent_runs", 10_001),
    ],
)
def test_a_limit_has_its_bounds(hook: Hook, field: str, value: Any) -> None:
    set_sender(hook, sender="standard-webhooks")
    before = getattr(stored(hook), field)
    with pytest.raises(ValidationError) as refused:
        update_hook(stored(hook), **{field: value})

    assert list(refused.value.message_dict) == [field]
    assert "shop.example" not in str(refused.value)
    assert getattr(stored(hook), field) == before
    assert not AuthEvent.objects.filter(kind=HookEvent.HOOK_LIMITS_CHANGED).exists()


def test_sixty_four_networks_are_allowed(hook: Hook) -> None:
    update_hook(hook, allowed_networks=[f"192.0.2.{number}" for number in range(64)])

    assert len(stored(hook).allowed_networks or []) == 64


@pytest.mark.parametrize("sender", ["dropbox", "hubspot", "intercom", "docusign"])
def test_body_hashes_are_refused_where_bodies_do_not_name_events(hook: Hook, sender: str) -> None:
    set_sender(hook, sender=sender)
    with pytest.raises(ValidationError) as refused:
        update_hook(stored(hook), idempotency="body-hash")

    assert list(refused.value.message_dict) == ["idempotency"]
    assert stored(hook).idempotency == ""


def idempotency_problem(hook: Hook, **changes: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        update_hook(stored(hook), **changes)
    assert list(refused.value.message_dict) == ["idempotency"]
    return " ".join(refused.value.messages)


@pytest.mark.parametrize("methods", [None, ["GET"], ["GET", "POST"]])
def test_bodies_of_anyone_s_get_are_not_compared(hook: Hook, methods: Any) -> None:
    update_hook(hook, methods=methods)

    assert "Bodies of GET are empty" in idempotency_problem(hook, idempotency="body-hash")
    assert stored(hook).idempotency == ""
    update_hook(stored(hook), idempotency="body-hash", methods=["POST"])
    assert stored(hook).idempotency == "body-hash"


@pytest.mark.parametrize("methods", [None, ["GET"], ["GET", "POST"]])
def test_get_is_refused_while_bodies_are_compared(hook: Hook, methods: Any) -> None:
    update_hook(hook, idempotency="body-hash", methods=["POST"])
    stale = stored(hook)

    idempotency_problem(stale, methods=methods)

    assert (stored(hook).methods, stored(hook).idempotency) == (["POST"], "body-hash")
    update_hook(stored(hook), idempotency="none", methods=methods)
    assert stored(hook).methods == methods


def test_bodies_of_a_sender_s_get_are_compared(hook: Hook) -> None:
    set_sender(hook, sender="github")
    update_hook(stored(hook), idempotency="body-hash", methods=["GET", "POST"])

    assert rules_in_force(stored(hook)).idempotency == Idempotency.BODY_HASH


def test_a_sender_whose_get_is_compared_is_not_removed(hook: Hook) -> None:
    set_sender(hook, sender="github")
    secret = set_signing_secret(hook, "hush")
    update_hook(stored(hook), idempotency="body-hash", methods=["GET"])
    with pytest.raises(ValidationError) as refused:
        set_sender(stored(hook), sender=None)

    assert list(refused.value.message_dict) == ["idempotency"]
    kept = stored(hook)
    assert (kept.sender, kept.idempotency, kept.signing_secret) == ("github", "body-hash", secret)
    assert not AuthEvent.objects.filter(kind=HookEvent.SENDER_REMOVED).exists()
    update_hook(stored(hook), methods=["POST"])
    set_sender(stored(hook), sender=None)
    assert (stored(hook).sender, stored(hook).idempotency) == ("", "body-hash")


@pytest.mark.parametrize("sender", [None, "github", "shopify", "gitlab-token"])
def test_an_event_id_has_to_be_signed(hook: Hook, sender: str | None) -> None:
    set_sender(hook, sender=sender)
    with pytest.raises(ValidationError) as refused:
        update_hook(stored(hook), idempotency="event-id")

    assert list(refused.value.message_dict) == ["idempotency"]


def test_an_event_id_may_be_in_a_signed_body(hook: Hook) -> None:
    set_sender(hook, sender="github")
    update_hook(stored(hook), idempotency="event-id", event_id_pointers=["/id"])

    assert rules_in_force(stored(hook)).idempotency == Idempotency.EVENT_ID


@pytest.mark.parametrize("sender", [None, "gitlab-token", "mailgun", "cloudevents"])
def test_pointers_need_a_signed_body(hook: Hook, sender: str | None) -> None:
    set_sender(hook, sender=sender)
    with pytest.raises(ValidationError) as refused:
        update_hook(stored(hook), event_id_pointers=["/id"])

    assert list(refused.value.message_dict) == ["event_id_pointers"]


def test_a_limit_is_checked_against_the_sender_that_is_set_meanwhile(hook: Hook) -> None:
    stale = stored(hook)
    set_sender(hook, sender="dropbox")
    with pytest.raises(ValidationError):
        update_hook(stale, idempotency="body-hash")

    assert stored(hook).idempotency == ""


def test_rules_in_force_show_what_defaults_stand_for(hook: Hook) -> None:
    set_sender(hook, sender="stripe")
    update_hook(stored(hook), calls_per_minute=55)
    rules = rules_in_force(stored(hook))

    assert (rules.burst, rules.idempotency) == (5, Idempotency.EVENT_ID)
    assert rules.sender is not None
    assert rules.sender.rules.tolerance_seconds == 300
    assert rules.accepted_status == 202


def test_the_default_reply_is_no_rule(hook: Hook) -> None:
    update_hook(hook, reply_mode="accepted", max_attempts=3)
    update_hook(stored(hook), reply_mode="script", max_attempts=None)
    values = Hook.objects.values_list(*COLUMNS).get()

    assert rules_of_call(hook.pk, values, timezone.now()) is None


@pytest.mark.parametrize(
    "rule", [{"reply_mode": "accepted"}, {"accepted_status": 201}, {"max_attempts": 3}]
)
def test_what_the_queue_needs_is_a_rule(hook: Hook, rule: dict[str, Any]) -> None:
    update_hook(hook, **rule)
    rules = rules_of_call(hook.pk, Hook.objects.values_list(*COLUMNS).get(), timezone.now())

    assert rules is not None
    assert {name: getattr(rules, name) for name in rule} == rule


def test_an_unknown_reply_is_refused(hook: Hook) -> None:
    with pytest.raises(ValidationError) as refused:
        update_hook(hook, reply_mode="later")

    assert list(refused.value.message_dict) == ["reply_mode"]
    assert stored(hook).reply_mode == ""


def test_a_burst_is_at_least_one(hook: Hook) -> None:
    update_hook(hook, calls_per_minute=3)

    assert rules_in_force(stored(hook)).burst == 1
