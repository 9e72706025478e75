"""The rules of a hook's calls: one table for columns, checks, defaults, GraphQL and forms.

A column that is null or blank sets no rule. ``CallRules`` holds the rules of one hook as its calls
need them, with defaults applied.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import TextChoices
from django.utils import timezone

from hooks import call_sender
from hooks.call_sender import CallSender
from hooks.models import Hook, Idempotency, ReplyMode
from hooks.models.hook import DAY_SECONDS
from hooks.rule_values import (
    ALL_METHODS,
    DEFAULT_METHODS,
    clean_idempotency,
    clean_methods,
    clean_networks,
    clean_origins,
    clean_pointers,
    clean_reply_mode,
    clean_size,
    clean_url,
    preset_of,
    preset_of_columns,
)
from hooks.senders import PRESETS
from scripts_engine.sandbox import figure_in_words

# The default burst is the calls a minute divided by this.
BURSTS_A_MINUTE = 10
# The status of the reply to a queued call, unless the sender expects another one.
ACCEPTED_STATUS = 202

# A hook's columns by name.
Columns = Mapping[str, Any]


# --- What calls need ------------------------------------------------------------------------------


class CallRules(NamedTuple):
    """What a hook demands of its calls."""

    sender: CallSender | None
    allowed_networks: Sequence[str]
    """Empty: all."""
    methods: Sequence[str]
    allow_path: bool
    """Whether a path may follow the hook's address."""
    allowed_origins: Sequence[str]
    """Origins whose pages may call the URL."""
    max_body_bytes: int
    idempotency: str
    """``none``, ``event-id`` or ``body-hash``."""
    idempotency_window_seconds: int
    calls_per_minute: int | None
    burst: int
    """0 where the calls a minute are unlimited."""
    max_concurrent_runs: int | None
    reply_mode: str
    """``script`` or ``accepted``."""
    accepted_status: int
    """The status of the reply to a call that was queued."""
    max_attempts: int
    max_concurrent_runs_of_script: int | None


# --- The table ------------------------------------------------------------------------------------

REPLY, DUPLICATES, WHO_MAY_CALL, RATE = (
    "Reply and retries",
    "Duplicates",
    "Who may call",
    "Rate",
)
# In the order of the form.
GROUPS = (REPLY, DUPLICATES, WHO_MAY_CALL, RATE)


class Applies(StrEnum):
    """Where a rule means something."""

    ALWAYS = "always"
    ACCEPTED = "accepted"
    """With the reply mode Accepted."""
    RATE = "rate"
    """With calls a minute."""
    SENDER = "sender"
    """With a sender."""
    SIGNED_TIME = "signed-time"
    """With a sender that signs the time."""


def _is_unset(hook: Columns) -> Any:
    return None


def _unlimited(rules: CallRules) -> str:
    return "unlimited"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRule:
    """One rule: a column of a hook, and what is said of it.

    A rule of text is a ``TextChoices``, a list of texts, or a text; others are true or false, or
    numbers, whose range is checked by the column.
    """

    name: str
    """The column, the argument and field of GraphQL, and the field of forms."""
    kind: type[TextChoices] | type[list[str]] | type[str] | type[bool] | type[int] = int
    refines: bool = False
    """Whether it only refines other rules, so that alone it sets none."""
    of_sender: bool = False
    """Whether it belongs to ``CallSender``."""
    clean: Callable[[Any], Any] | None = None
    """Returns a given value as it is stored. Raises ``ValidationError``."""
    is_empty_refused: bool = False
    """Whether an empty value is refused, rather than a reset."""
    default: Callable[[Columns], Any] = _is_unset
    """What is in force if the column sets nothing."""
    in_force: Callable[[Hook], Any] | None = None
    """What GraphQL shows, where it is not in ``CallRules``."""

    shown: str
    """The description of the GraphQL field."""
    given: str = ""
    """The description of the GraphQL argument, if it is another one."""
    is_nullable: bool = False
    is_given_at_creation: bool = False

    label: str
    """Of the form's field."""
    help: str = ""
    """Of the form's field, for others than numbers."""
    empty: Callable[[CallRules], str] = _unlimited
    """For numbers: what an empty field stands for."""
    choices: tuple[tuple[str, str], ...] = ()
    """The form's choices; of a list, each value alone."""
    rows: int = 0
    """The form's lines for a list of texts, one on each."""
    group: str = WHO_MAY_CALL
    """The heading of the form under which it stands."""
    applies: Applies = Applies.ALWAYS
    """Where the form shows it."""
    words: Callable[[CallRules], str] | None = None
    """What the hook's page says of it; ``None``: nothing."""
    title: str = ""
    """The label on the hook's page, if it is not the form's."""

    @property
    def unset(self) -> str | bool | None:
        """The value of the column that sets nothing."""
        if self.kind is bool:
            return False
        return "" if issubclass(self.kind, str) else None


def default_accepted_status(sender: str) -> int:
    """The status with which the sender takes a call for accepted; ``""``: any sender."""
    preset = PRESETS.get(sender)
    return ACCEPTED_STATUS if preset is None else preset.accepted_status


def _default_idempotency(hook: Columns) -> str:
    if not hook["sender"]:
        return Idempotency.NONE
    preset = preset_of_columns(hook["sender"], hook["hmac"])
    has_event_id = hook["event_id_pointers"] or (preset is not None and preset.has_event_id)
    return Idempotency.EVENT_ID if has_event_id else Idempotency.NONE


def _default_burst(hook: Columns) -> int:
    per_minute = hook["calls_per_minute"]
    return 0 if per_minute is None else max(1, per_minute // BURSTS_A_MINUTE)


def _tolerance(hook: Hook) -> int | None:
    sender = rules_in_force(hook).sender
    return hook.tolerance_seconds if sender is None else sender.rules.tolerance_seconds


def _tolerance_in_words(rules: CallRules) -> str:
    seconds = None if rules.sender is None else rules.sender.rules.tolerance_seconds
    return "the sender's" if seconds is None else f"{seconds:,} s"


def _calls_in_words(rules: CallRules) -> str:
    if rules.calls_per_minute is None:
        return "unlimited"
    return f"{rules.calls_per_minute:,} a minute, {rules.burst:,} at once"


def _runs_in_words(rules: CallRules) -> str:
    runs = rules.max_concurrent_runs
    return "unlimited" if runs is None else f"{runs:,}"


def _reply_in_words(rules: CallRules) -> str:
    if rules.reply_mode == ReplyMode.SCRIPT:
        return "the script's"
    return f"{rules.accepted_status} as soon as the run is queued"


_DUPLICATES = {
    Idempotency.NONE.value: "not detected",
    Idempotency.EVENT_ID.value: "by the sender's event id",
    Idempotency.BODY_HASH.value: "by equal method, path, query and body",
}

RULES = (
    HookRule(
        name="allowed_networks",
        kind=list,
        clean=clean_networks,
        default=lambda hook: (),
        shown="Networks of callers in CIDR notation; empty if calls may come from anywhere.",
        given="Up to 64 networks of callers in CIDR notation; empty: all.",
        label="Networks",
        help="One per line, for example 192.0.2.0/24. Callers from other networks get 404, as "
        "if the token were wrong. Empty: every network.",
        rows=3,
        words=lambda rules: ", ".join(rules.allowed_networks) or "every network",
    ),
    HookRule(
        name="methods",
        kind=list,
        clean=clean_methods,
        is_empty_refused=True,
        default=lambda hook: DEFAULT_METHODS,
        shown="The methods that run the script, out of GET, POST, PUT, PATCH and DELETE.",
        label="Methods",
        help="Handshakes are answered whatever you choose.",
        choices=tuple((method, method) for method in ALL_METHODS),
        words=lambda rules: ", ".join(rules.methods),
    ),
    HookRule(
        name="allow_path",
        kind=bool,
        default=lambda hook: False,
        shown="Whether a path may follow the hook's address, which the script gets as "
        '`params.get("path")`.',
        label="Path after the address",
        help='Calls of …/items/7 run the script too, with /items/7 as params.get("path").',
        words=lambda rules: "allowed" if rules.allow_path else "none",
    ),
    HookRule(
        name="allowed_origins",
        kind=list,
        clean=clean_origins,
        default=lambda hook: (),
        shown="Origins whose pages may call the hook's URL (CORS).",
        given="Up to 20 origins whose pages may call the hook's URL, such as "
        "https://shop.example; needs `callsPerMinute`.",
        label="Origins of pages",
        help="One per line, for example https://shop.example: pages from there may call the URL "
        "and read the reply. Needs a limit of calls a minute.",
        rows=3,
        words=lambda rules: ", ".join(rules.allowed_origins) or "none",
    ),
    HookRule(
        name="max_body_bytes",
        clean=clean_size,
        default=lambda hook: settings.HOOK_MAX_BODY_BYTES,
        shown="The largest payload, in bytes.",
        given="The largest payload: 1 to 1048576.",
        label="Largest payload (bytes)",
        empty=lambda rules: figure_in_words(settings.HOOK_MAX_BODY_BYTES),
        words=lambda rules: f"{rules.max_body_bytes:,} bytes",
        title="Largest payload",
    ),
    HookRule(
        name="tolerance_seconds",
        refines=True,
        of_sender=True,
        in_force=_tolerance,
        shown="How old or early a signed time may be; null if none is signed.",
        given="How old or early a signed time may be: 10 to 86400.",
        is_nullable=True,
        applies=Applies.SIGNED_TIME,
        label="Accepted age of signatures (s)",
        empty=_tolerance_in_words,
    ),
    HookRule(
        name="signed_url",
        kind=str,
        refines=True,
        of_sender=True,
        clean=clean_url,
        in_force=lambda hook: hook.signed_url,
        shown="The URL that the sender signs; null if it is the hook's own.",
        given="The URL that the sender signs, if it is not the hook's own.",
        is_nullable=True,
        applies=Applies.SENDER,
        label="Signed URL",
        help="If the sender signs the URL and sees another one than this server's.",
    ),
    HookRule(
        name="idempotency",
        kind=Idempotency,
        clean=clean_idempotency,
        default=_default_idempotency,
        shown="How a repeated delivery is recognised.",
        group=DUPLICATES,
        label="Duplicates",
        help="A repeated delivery gets the recorded reply, and nothing runs. Bodies are not "
        "compared where anyone may call with GET.",
        choices=(
            ("", "By the event id, if the sender signs one"),
            (Idempotency.EVENT_ID.value, "By the event id"),
            (Idempotency.BODY_HASH.value, "By equal method, path, query and body"),
            (Idempotency.NONE.value, "Run every delivery"),
        ),
        words=lambda rules: _DUPLICATES[rules.idempotency],
    ),
    HookRule(
        name="idempotency_window_seconds",
        refines=True,
        default=lambda hook: DAY_SECONDS,
        shown="How long a delivery is remembered.",
        given="How long a delivery is remembered: 1 to 604800.",
        group=DUPLICATES,
        label="Remember deliveries for (s)",
        empty=lambda rules: "24 h",
    ),
    HookRule(
        name="event_id_pointers",
        kind=list,
        refines=True,
        of_sender=True,
        clean=clean_pointers,
        in_force=lambda hook: hook.event_id_pointers or (),
        shown="JSON pointers (RFC 6901) to the event id in a signed body.",
        given="Up to 3 JSON pointers (RFC 6901) to the event id in a signed body.",
        group=DUPLICATES,
        applies=Applies.SENDER,
        label="Event id in the body",
        help="Up to 3 JSON pointers, one per line, for example /event/id. Only in bodies that the "
        "sender signs.",
        rows=2,
    ),
    HookRule(
        name="calls_per_minute",
        shown="Verified calls a minute; null if unlimited.",
        given="Verified calls a minute: 1 to 1000000.",
        is_nullable=True,
        group=RATE,
        label="Calls per minute",
        words=_calls_in_words,
        title="Calls",
    ),
    HookRule(
        name="burst",
        refines=True,
        default=_default_burst,
        shown="Calls that may come at once; null if unlimited.",
        given="Calls that may come at once: 1 to 1000000.",
        is_nullable=True,
        group=RATE,
        applies=Applies.RATE,
        label="Burst",
        empty=lambda rules: "a tenth of the calls a minute",
    ),
    HookRule(
        name="max_concurrent_runs",
        shown="Runs at the same time; null if unlimited.",
        given="Runs at the same time: 1 to 10000.",
        is_nullable=True,
        group=RATE,
        label="Concurrent runs",
        words=_runs_in_words,
    ),
    HookRule(
        name="reply_mode",
        kind=ReplyMode,
        clean=clean_reply_mode,
        default=lambda hook: ReplyMode.SCRIPT,
        shown="What callers get as the reply.",
        is_given_at_creation=True,
        group=REPLY,
        label="Reply",
        help="A queued run that fails is tried again.",
        choices=(
            ("", "The script's reply"),
            (ReplyMode.ACCEPTED.value, "Accepted: reply as soon as the run is queued"),
        ),
        words=_reply_in_words,
    ),
    HookRule(
        name="accepted_status",
        default=lambda hook: default_accepted_status(hook["sender"]),
        shown="The status of the reply to a call that was queued.",
        given="The status of the reply to a call that was queued: 200 to 299.",
        is_given_at_creation=True,
        group=REPLY,
        applies=Applies.ACCEPTED,
        label="Status of accepted calls",
        empty=lambda rules: str(
            default_accepted_status("" if rules.sender is None else rules.sender.rules.preset)
        ),
    ),
    HookRule(
        name="max_attempts",
        default=lambda hook: settings.QUEUE_MAX_ATTEMPTS,
        shown="How often a queued run is tried.",
        given="How often a queued run is tried: 1 to 20.",
        is_given_at_creation=True,
        group=REPLY,
        applies=Applies.ACCEPTED,
        label="Attempts of a queued run",
        empty=lambda rules: f"{settings.QUEUE_MAX_ATTEMPTS}",
        words=lambda rules: f"{rules.max_attempts}",
    ),
)
# Columns that ``update_hook`` changes; ``None`` resets each to its default.
NAMES = frozenset(rule.name for rule in RULES)
_OF_CALLS = tuple(rule for rule in RULES if not rule.of_sender)


def cleaned_rules(changes: Columns) -> dict[str, Any]:
    """The values of the given rules as they are stored, by name in alphabetical order.

    Ranges of numbers are checked by the model. Raises ``ValidationError`` by field.
    """
    given = sorted((rule for rule in RULES if rule.name in changes), key=lambda rule: rule.name)
    return {rule.name: _cleaned(rule, changes[rule.name]) for rule in given}


def _cleaned(rule: HookRule, value: Any) -> Any:
    if value is None or (value in ("", []) and not rule.is_empty_refused):
        return rule.unset
    return value if rule.clean is None else rule.clean(value)


# --- The rules of one hook ------------------------------------------------------------------------

# Columns that set a rule for calls. Where all are empty, there are no rules.
CONDITIONS = (
    "sender",
    *(rule.name for rule in RULES if not rule.refines),
    "script__max_concurrent_runs",
)
# Columns that refine those.
DETAILS = (*(rule.name for rule in RULES if rule.refines), *call_sender.DETAILS)
COLUMNS = CONDITIONS + DETAILS


def rules_of_call(hook_id: uuid.UUID, columns: Sequence[Any], now: datetime) -> CallRules | None:
    """Takes the values of ``COLUMNS``; ``None`` if they set no rule."""
    if not any(columns[: len(CONDITIONS)]):
        return None
    return _rules_of(hook_id, dict(zip(COLUMNS, columns, strict=True)), now)


def rules_in_force(hook: Hook) -> CallRules:
    """The rules of the hook's calls, with defaults for those that are not set.

    Without signing secrets; with a tolerance where signed material contains a time.
    """
    columns: dict[str, Any] = {name: getattr(hook, name) for name in COLUMNS if "__" not in name}
    columns["script__max_concurrent_runs"] = hook.script.max_concurrent_runs
    rules, preset = _rules_of(hook.pk, columns, timezone.now()), preset_of(hook)
    if rules.sender is None or rules.sender.rules.tolerance_seconds is not None or preset is None:
        return rules
    tolerance = preset.tolerance_seconds if preset.has_timestamp else None
    of_sender = replace(rules.sender.rules, tolerance_seconds=tolerance)
    return rules._replace(sender=rules.sender._replace(rules=of_sender))


def value_in_force(rule: HookRule, hook: Hook) -> Any:
    """The rule's value of the hook, its default applied; ``None`` if nothing is in force."""
    of_hook = rule.in_force
    value = getattr(rules_in_force(hook), rule.name) if of_hook is None else of_hook(hook)
    return None if rule.is_nullable and not value else value


def _rules_of(hook_id: uuid.UUID, hook: Columns, now: datetime) -> CallRules:
    values = {rule.name: hook[rule.name] or rule.default(hook) for rule in _OF_CALLS}
    values["max_body_bytes"] = min(values["max_body_bytes"], settings.HOOK_MAX_BODY_BYTES)
    return CallRules(
        sender=CallSender.of_columns(hook_id, hook, now, allowed_rate=hook["calls_per_minute"]),
        max_concurrent_runs_of_script=hook["script__max_concurrent_runs"],
        **values,
    )
