"""Hooks in releases: their state with all rules and the pin, without any secret."""

import hashlib
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, cast
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db.models import Field as ModelField
from django.db.models import TextChoices
from django.utils import timezone

from accounts.models import Organisation
from accounts.scopes import Scope
from core.database.ids import parse_uuid
from core.http.origin import Origin
from hooks.call_sender import OPTIONS, api_name_of
from hooks.flows.saving import (
    KIND,
    ChangedHook,
    keep_call_token,
    locked_hooks,
    problems_of,
    save_hooks,
)
from hooks.flows.senders import checked_options, end_unfit_secrets, turn_to
from hooks.models import Hook
from hooks.rule_values import check_fit, invalid
from hooks.rules import RULES, CallRules, HookRule, cleaned_rules, rules_in_force
from hooks.senders import PRESETS
from scripts_engine.models import Script, ScriptVersion
from scripts_engine.releases.items import (
    Check,
    Field,
    ProblemCode,
    Refers,
    Values,
    WrongValueError,
    a_digest,
    a_name,
    a_text,
    a_whole_number,
    always,
    invalid_value,
    one_of,
    or_null,
    texts,
    yes_or_no,
)
from scripts_engine.releases.kinds import (
    Issued,
    Kind,
    State,
    about,
    choice_in,
    member_name,
    naming,
    value_in,
)

_RULES = {api_name_of(rule.name): rule for rule in RULES}
_ENUMS = {option.api_name for option in OPTIONS if option.enum}
_UNSET = ("sender", "hmac", "pinned", *_RULES)


# May hold a call token, which readers of releases and manifests must not see.
_HIDDEN = "signed_url"


def _field_of(name: str, rule: HookRule) -> Field:
    column = cast("ModelField[Any, Any]", Hook._meta.get_field(rule.name))

    def check(value: object) -> Any:
        if rule.kind in _CHECKS:
            value = _CHECKS[rule.kind](value)
        try:
            cleaned = cleaned_rules({rule.name: _stored(rule, name, {name: value})})[rule.name]
            column.run_validators(cleaned)
        except ValidationError as error:
            raise invalid_value(error) from None
        return _shown(rule, cleaned)

    is_open = rule.name != _HIDDEN
    methods_of_sender = _methods_of_sender if rule.name == "methods" else always(None)
    return Field(
        name=name,
        check=or_null(check),
        default=methods_of_sender,
        is_kept=not is_open,
        is_written=is_open,
    )


def _methods_of_sender(item: Values) -> list[str] | None:
    """As ``set_sender`` does for a hook without a sender."""
    preset = PRESETS.get(item.get("sender") or "")
    return None if preset is None else list(preset.methods)


def _options(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongValueError(ProblemCode.WRONG_TYPE, "Enter an object.")
    given = {name: None if option is None else a_text(option) for name, option in value.items()}
    try:
        options = checked_options("hmac", _with_enums(given, str.lower))
    except ValidationError as error:
        raise invalid_value(error) from None
    return _with_enums(options or {}, str.title)


_CHECKS: Mapping[Any, Check] = {
    int: a_whole_number,
    str: a_text,
    list: texts,
    bool: yes_or_no,
}


class HookKind(Kind):
    name = KIND
    section = "hooks"
    fields = (
        Field(name="script", check=a_name, is_required=True, refers_to=Refers.SCRIPT),
        Field(name="name", check=a_name, is_required=True),
        Field(name="enabled", check=yes_or_no, default=always(False), is_kept=True),
        Field(name="sender", check=or_null(one_of(PRESETS.keys()))),
        Field(name="hmac", check=or_null(_options)),
        Field(name="pinned", check=or_null(a_digest), refers_to=Refers.VERSION),
        *(_field_of(name, rule) for name, rule in _RULES.items()),
    )
    unique_within = ("script",)

    def states(
        self, organisation: Organisation, ids: Collection[uuid.UUID], *, lock: bool = False
    ) -> dict[uuid.UUID, State]:
        hooks = Hook.objects.ever_of_organisation(organisation).filter(pk__in=ids)
        if lock:
            hooks = locked_hooks(organisation, ids)
        return {hook.pk: state_of(hook) for hook in hooks.existing()}

    def of_scripts(
        self, organisation: Organisation, script_ids: Collection[uuid.UUID]
    ) -> set[uuid.UUID]:
        hooks = Hook.objects.of_organisation(organisation).filter(script__in=script_ids)
        return set(hooks.order_by().values_list("pk", flat=True))

    def scope_of(self, before: State | None, after: State | None) -> Scope:
        return Scope.WRITE_HOOKS

    def put(
        self,
        organisation: Organisation,
        states: Mapping[uuid.UUID, State | None],
        *,
        origin: Origin,
    ) -> Sequence[Issued]:
        rows = {hook.pk: hook for hook in locked_hooks(organisation, states.keys())}
        changes: list[ChangedHook] = []
        issued: list[Issued] = []
        for hook_id, state in states.items():
            hook, before = rows.get(hook_id), copy(rows.get(hook_id))
            if state is None:
                if hook is None:
                    continue
                hook.deleted_at = hook.deleted_at or timezone.now()
            else:
                call_token = None
                if hook is None:
                    hook = Hook(pk=hook_id)
                    call_token = hook.renew_secret()
                    issued.append(Issued(hook_id, call_token))
                with naming(KIND, state.get("name")):
                    take(hook, state)
                if call_token is not None:
                    keep_call_token(hook, call_token)
                hook.deleted_at = None
            changes.append(ChangedHook(hook, before))
        for hook, problem in problems_of(organisation, changes):
            raise about(KIND, hook.name, problem)
        turned = [each.hook for each in changes if each.before and each.has_other_sender]
        if turned:
            end_unfit_secrets(turned)
        save_hooks(organisation, changes, origin=origin)
        return issued

    def differences(
        self, organisation: Organisation, changes: Sequence[tuple[State | None, State | None]]
    ) -> list[str]:
        words = _Words(organisation, [state for change in changes for state in change])
        return [words.of_change(before, after) for before, after in changes]

    def misfits(self, state: State) -> Iterator[tuple[str, str]]:
        hook = Hook()
        try:
            take(hook, state)
            check_fit(hook)
        except ValidationError as error:
            for column, messages in error.message_dict.items():
                yield api_name_of(column), " ".join(messages)

    def version_of(self, state: State | None) -> uuid.UUID | None:
        return None if state is None else parse_uuid(state["pinned"] or "")


# --- States ---------------------------------------------------------------------------------------


def state_of(hook: Hook) -> State:
    pin = hook.pinned_version_id
    return {
        "script": str(hook.script_id),
        "name": hook.name,
        "enabled": hook.is_enabled,
        "sender": hook.sender or None,
        "hmac": None if hook.hmac is None else _with_enums(hook.hmac, str.title),
        "pinned": None if pin is None else str(pin),
        **{name: _shown(rule, getattr(hook, rule.name)) for name, rule in _RULES.items()},
    }


def _with_enums(options: Mapping[str, Any], spell: Callable[[str], str]) -> dict[str, Any]:
    """The options of the sender ``hmac``, the values of enums spelled in another way."""
    return {
        name: spell(value) if name in _ENUMS and isinstance(value, str) else value
        for name, value in options.items()
    }


def _shown(rule: HookRule, value: Any) -> Any:
    if value is None or value == rule.unset:
        return None
    return member_name(rule.kind(value)) if issubclass(rule.kind, TextChoices) else value


def take(hook: Hook, state: State) -> None:
    """Sets the columns by a state, of which keys with defaults may be left out; saves nothing.

    The state may come from a client. Raises ``ValidationError`` by field.
    """
    script_id = parse_uuid(value_in(state, "script", str) or "")
    if script_id is None or not (hook._state.adding or hook.script_id == script_id):
        raise invalid("script", "A hook keeps its script.")
    hook.script_id = script_id
    hook.name = value_in(state, "name", str) or ""
    is_enabled = value_in(state, "enabled", bool)
    hook.is_enabled = True if is_enabled is None else is_enabled
    sender, given = value_in(state, "sender", str), value_in(state, "hmac", dict)
    hmac = None if given is None else _with_enums(given, str.lower)
    options = checked_options(sender, hmac)
    if (sender or "", options) != (hook.sender, hook.hmac):
        turn_to(hook, sender, options)
    pin = value_in(state, "pinned", str)
    hook.pinned_version_id = None if pin is None else parse_uuid(pin)
    if pin is not None and hook.pinned_version_id is None:
        raise invalid("pinned", "There is no such version.")
    rules = {rule.name: _stored(rule, name, state) for name, rule in _RULES.items()}
    for column, value in cleaned_rules(rules).items():
        setattr(hook, column, value)


def _stored(rule: HookRule, name: str, state: State) -> Any:
    if issubclass(rule.kind, TextChoices):
        return choice_in(state, name, rule.kind)
    value = value_in(state, name, rule.kind)
    if isinstance(value, list) and not all(isinstance(each, str) for each in value):
        raise invalid(name, "Enter a list of texts.")
    return value


# --- For people -----------------------------------------------------------------------------------


class _Words:
    """States in words. Looks up the scripts and versions that they name."""

    def __init__(self, organisation: Organisation, states: Iterable[State | None]) -> None:
        there = [state for state in states if state is not None]
        scripts = Script.objects.ever_of_organisation(organisation)
        scripts = scripts.filter(pk__in={state["script"] for state in there})
        self._scripts = {str(pk): name for pk, name in scripts.values_list("pk", "name")}
        versions = ScriptVersion.objects.filter(script__organisation=organisation)
        versions = versions.filter(pk__in={state["pinned"] for state in there} - {None})
        self._versions = {str(pk): number for pk, number in versions.values_list("pk", "number")}

    def of_change(self, before: State | None, after: State | None) -> str:
        if before is not None and after is not None:
            pairs = zip(self.of(before), self.of(after), strict=True)
            changed = [(label, old, new) for (label, old), (_, new) in pairs if old != new]
            return "\n".join(f"{label}: {old} -> {new}" for label, old, new in changed)
        state = after or before or {}
        unset = {"script": "", "name": "", "enabled": not state["enabled"]}
        said = zip(self.of(state), self.of(dict.fromkeys(_UNSET) | unset), strict=True)
        lines = [(label, value) for (label, value), (_, other) in said if value != other]
        return "\n".join(f"{label}: {value}" for label, value in lines)

    def of(self, state: State) -> list[tuple[str, str]]:
        """Each property with its value, in one order for all states."""
        hook = _hook_of(state)
        in_force, preset = rules_in_force(hook), PRESETS.get(hook.sender)
        pin = state["pinned"]
        number = self._versions.get(pin, "that was deleted")
        return [
            ("Name", state["name"]),
            ("Script", self._scripts.get(state["script"], "")),
            ("Enabled", "yes" if state["enabled"] else "no"),
            ("Sender", (hook.sender if preset is None else preset.title) or "anyone"),
            ("Signature", _options_in_words(hook.hmac)),
            ("Runs", "the live version" if pin is None else f"version {number}"),
            *((rule.label, _in_words(rule, getattr(hook, rule.name), in_force)) for rule in RULES),
        ]


def _hook_of(state: State) -> Hook:
    """A hook with the rules of a state that a release has kept."""
    options = state["hmac"]
    rules = {}
    for name, rule in _RULES.items():
        value = _stored(rule, name, state)
        rules[rule.name] = rule.unset if value is None else value
    return Hook(
        script=Script(),
        sender=state["sender"] or "",
        hmac=None if options is None else _with_enums(options, str.lower),
        **rules,
    )


def _options_in_words(options: Mapping[str, str | None] | None) -> str:
    if options is None:
        return "the sender's"
    return ", ".join(f"{name} {value}" for name, value in sorted(options.items()) if value)


def _in_words(rule: HookRule, value: Any, in_force: CallRules) -> str:
    if value == rule.unset and rule.kind is int:
        return rule.empty(in_force)
    if value == rule.unset or isinstance(value, bool):
        return dict(rule.choices).get("") or (rule.words or _unset)(in_force)
    if rule.name == _HIDDEN:
        mark = hashlib.sha256(value.encode()).hexdigest()[:8]
        return f"one at {urlsplit(value).hostname} ({mark})"
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:,}" if isinstance(value, int) else str(dict(rule.choices).get(value, value))


def _unset(rules: CallRules) -> str:
    return "not set"
