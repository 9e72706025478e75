"""Diagnosis of a refused call: which single change would have made its signature match?"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

from hooks.senders.contract import (
    Call,
    Greeting,
    Hint,
    Refusal,
    RefusalReason,
    Rules,
    Strength,
    Verified,
)
from hooks.senders.handshakes import SIGNED_HANDSHAKES
from hooks.senders.json_body import InvalidJSONError, parse_json
from hooks.senders.preset import (
    PRESETS,
    Algorithm,
    Encoding,
    Preset,
    Scheme,
    TimestampUnit,
    preset_with,
)
from hooks.senders.secrets import SecretFormat
from hooks.senders.verification import examine_as

_SIGNATURE_REASONS = {
    RefusalReason.SIGNATURE_MISSING,
    RefusalReason.SIGNATURE_MALFORMED,
    RefusalReason.SIGNATURE_MISMATCH,
}
_TIME_REASONS = {RefusalReason.TIMESTAMP_TOO_OLD, RefusalReason.TIMESTAMP_TOO_NEW}
_DECODED = {
    SecretFormat.WHSEC,
    SecretFormat.WHSEC_OR_WHPK,
    SecretFormat.BASE64,
    SecretFormat.HEX,
}
_DIGESTS = {Scheme.HMAC, Scheme.NUMBERED, Scheme.TWILIO, Scheme.MAILGUN}


@dataclass(frozen=True, slots=True)
class _Variant:
    """A call, or the rules that it is judged by, with one thing changed."""

    code: str
    sentence: str
    preset: Preset
    rules: Rules
    secrets: Sequence[str]
    call: Call


def diagnose(
    rules: Rules,
    secrets: Sequence[str],
    call: Call,
    *,
    now: float,
    refused: Refusal,
    retired_secrets: Sequence[tuple[str, datetime]] = (),
    other_hooks: Sequence[tuple[str, Rules, Sequence[str]]] = (),
    public_url: str = "",
) -> tuple[Hint, ...]:
    """Explains why ``examine`` refused a call; empty for reasons that it does not give.

    ``now`` is the time of the call. ``retired_secrets`` are with the time at which each ended,
    ``other_hooks`` with the label that the hint names. Each hint was tried by verifying the changed
    call; none contains a secret or a signature.
    """
    preset = preset_with(rules.preset, rules.hmac)
    if refused.reason is RefusalReason.NO_SECRET_SET or preset is None:
        return (Hint("no-secret", _SET_SINCE if secrets else _NOTHING_SET),)
    if refused.reason is RefusalReason.HANDSHAKE_REFUSED:
        return (Hint("handshake", f"The handshake was refused: {refused.detail}."),)
    if refused.reason in _TIME_REASONS:
        unit = _first(_timestamp_units(preset, rules, secrets, call), now, is_time_judged=True)
        return (*unit, _time_in_words(preset, rules, refused))
    if refused.reason not in _SIGNATURE_REASONS:
        return ()
    variants = _variants(preset, rules, secrets, call, retired_secrets, other_hooks)
    return (
        _first(variants, now)
        or _weaker_only(preset, call, refused)
        or _first(_changed_calls(preset, rules, secrets, call, public_url), now)
        or _first(_timestamp_units(preset, rules, secrets, call), now, is_time_judged=True)
        or (_UNEXPLAINED[refused.reason](refused),)
    )


_NOTHING_SET = "No signing secret is set, so every call is refused. Enter the sender's secret."
_SET_SINCE = (
    "No signing secret was set when the call came. One is set now, which this call does not match: "
    "have the sender send it again."
)
_UNEXPLAINED = {
    RefusalReason.SIGNATURE_MISSING: lambda refused: Hint(
        "signature-missing",
        f"The call carries no signature of this sender: {refused.detail}. Check that a secret is "
        "set at the sender and that the hook names the right sender.",
    ),
    RefusalReason.SIGNATURE_MALFORMED: lambda refused: Hint(
        "signature-malformed",
        f"The signature cannot be read: {refused.detail}. Check that the hook names the right "
        "sender and that no proxy changes headers.",
    ),
    RefusalReason.SIGNATURE_MISMATCH: lambda refused: Hint(
        "secret-unknown",
        f"No known mistake explains the signature: {refused.detail}. Probably the sender has "
        "another secret; enter the same one at both ends.",
    ),
}


def _first(
    variants: Iterator[_Variant], now: float, *, is_time_judged: bool = False
) -> tuple[Hint, ...]:
    """The hint of the first variant whose signature matches."""
    for each in variants:
        outcome = examine_as(each.preset, each.rules, each.secrets, each.call, now=now)
        is_match = isinstance(outcome, Verified) or (
            # Unsigned handshakes are answered without any proof.
            isinstance(outcome, Greeting) and each.preset.handshake in SIGNED_HANDSHAKES
        )
        is_only_late = isinstance(outcome, Refusal) and outcome.reason in _TIME_REASONS
        if is_match or (is_only_late and not is_time_judged):
            return (Hint(each.code, each.sentence),)
    return ()


def _time_in_words(preset: Preset, rules: Rules, refused: Refusal) -> Hint:
    tolerance = rules.tolerance_seconds or preset.tolerance_seconds
    what_to_do = (
        "The call was delayed or sent again, or a clock is wrong."
        if refused.reason is RefusalReason.TIMESTAMP_TOO_OLD
        else "The sender's clock is fast or this server's is slow."
    )
    sentence = (
        f"The signature matches, but its time is {refused.detail}, and the hook accepts "
        f"{tolerance} s. {what_to_do}"
    )
    return Hint("time", sentence)


def _variants(
    preset: Preset,
    rules: Rules,
    secrets: Sequence[str],
    call: Call,
    retired_secrets: Sequence[tuple[str, datetime]],
    other_hooks: Sequence[tuple[str, Rules, Sequence[str]]],
) -> Iterator[_Variant]:
    yield from _secret_forms(preset, rules, secrets, call)
    for secret, ended_at in retired_secrets:
        sentence = (
            f"The signature matches the previous secret, which ended {_moment(ended_at)}. Enter "
            "the current one at the sender."
        )
        yield _Variant("previous-secret", sentence, preset, rules, (secret,), call)
    for label, their_rules, their_secrets in other_hooks:
        theirs = preset_with(their_rules.preset, their_rules.hmac)
        if theirs is None or theirs.strength is Strength.HANDSHAKE_ONLY:
            continue
        sentence = (
            f"The signature matches the secret of another hook: {label}. Check which hook's URL "
            "the sender has."
        )
        yield _Variant("other-hook", sentence, theirs, their_rules, their_secrets, call)
        yield _Variant("other-hook", sentence, preset, rules, their_secrets, call)
    for other in PRESETS.values():
        if other.name in (preset.name, "hmac") or other.strength is Strength.HANDSHAKE_ONLY:
            continue
        if _is_weaker_form(other, preset):
            continue
        sentence = f"The call is signed as by {other.title}. Set the sender to {other.name}."
        plain = Rules(other.name, tolerance_seconds=rules.tolerance_seconds)
        yield _Variant("other-preset", sentence, other, plain, secrets, call)
    yield from _digest_forms(preset, rules, secrets, call)


def _secret_forms(
    preset: Preset, rules: Rules, secrets: Sequence[str], call: Call
) -> Iterator[_Variant]:
    """The secrets with other white space, decoded, or not decoded."""

    def variant(code: str, sentence: str, format_: SecretFormat, forms: list[str]) -> _Variant:
        return _Variant(code, sentence, replace(preset, secret=format_), rules, forms, call)

    yield variant(
        "secret-trimmed",
        "The signature matches when white space around the secret is removed. Paste it again.",
        preset.secret,
        [secret.strip() for secret in secrets if secret != secret.strip()],
    )
    if preset.secret is SecretFormat.TEXT:
        yield variant(
            "secret-trimmed",
            "The sender's copy of the secret has white space at its end, such as a trailing "
            "newline. Enter it again at the sender, without.",
            SecretFormat.TEXT,
            [secret + end for secret in secrets for end in ("\n", "\r\n", " ", "\t")],
        )
        yield variant(
            "secret-base64-decoded",
            "The signature matches when the secret is decoded from base64: the sender does so, and "
            "this hook's sender does not. Check the sender's name, or the secret's encoding.",
            SecretFormat.BASE64,
            [secret.removeprefix("whsec_") for secret in secrets],
        )
    if preset.secret in _DECODED:
        yield variant(
            "secret-not-decoded",
            "The signature matches when the secret is used as text: the sender does not decode it, "
            "and this hook's sender does. Check the sender's name, or the secret's encoding.",
            SecretFormat.TEXT,
            [form for secret in secrets for form in (secret, secret.removeprefix("whsec_"))],
        )
    if preset.secret is not SecretFormat.HEX:
        yield variant(
            "secret-hex-decoded",
            "The signature matches when the secret is decoded from hexadecimal digits: the sender "
            "does so. Check the secret's encoding.",
            SecretFormat.HEX,
            list(secrets),
        )


def _digest_forms(
    preset: Preset, rules: Rules, secrets: Sequence[str], call: Call
) -> Iterator[_Variant]:
    """Another encoding of the signature, or another algorithm."""
    if preset.scheme not in _DIGESTS:
        return
    for encoding in Encoding:
        if encoding is preset.encoding:
            continue
        sentence = (
            f"The signature matches, but it is written in {encoding}, not in {preset.encoding}. "
            "Change the encoding."
        )
        other = replace(preset, encoding=encoding)
        yield _Variant("encoding", sentence, other, rules, secrets, call)
    for algorithm in Algorithm:
        if algorithm is preset.algorithm:
            continue
        sentence = (
            f"The signature matches with the algorithm {algorithm}, and this hook expects "
            f"{preset.algorithm}. Change it at the sender or here."
        )
        prefix = preset.prefix.replace(preset.algorithm, algorithm)
        for each in dict.fromkeys((preset.prefix, prefix)):
            other = replace(preset, algorithm=algorithm, prefix=each)
            yield _Variant("algorithm", sentence, other, rules, secrets, call)


def _is_weaker_form(other: Preset, preset: Preset) -> bool:
    """Whether a call as by the other sender is one of this sender with only a weaker proof."""
    weaker = {name.lower() for name in preset.weaker}
    is_weak = other.scheme is Scheme.TOKEN or other.algorithm is Algorithm.SHA1
    return is_weak and any(names.signature.lower() in weaker for names in other.headers)


def _weaker_only(preset: Preset, call: Call, refused: Refusal) -> tuple[Hint, ...]:
    """Tells a call that carries nothing but a signature that is not accepted."""
    if refused.reason is not RefusalReason.SIGNATURE_MISSING:
        return ()
    headers = {name.lower(): value for name, value in call.headers}
    found = [name for name in preset.weaker if name.lower() in headers]
    for each in preset.headers:
        items = headers.get(each.signature.lower(), "").split(preset.separator or ",")
        keys = {item.strip().partition("=")[0] for item in items}
        found += [key for key in preset.weaker_keys if key in keys]
    if not found:
        return ()
    wanted = preset.headers[0].signature
    if preset.signature_key:
        wanted = f"{preset.signature_key} in {wanted}"
    sentence = (
        f"The call carries only {', '.join(found)}, a weaker proof that is not accepted. The hook "
        f"expects {wanted}."
    )
    return (Hint("weaker-signature-only", sentence),)


def _changed_calls(
    preset: Preset, rules: Rules, secrets: Sequence[str], call: Call, public_url: str
) -> Iterator[_Variant]:
    """The call with another body or another URL."""

    def variant(code: str, sentence: str, changed: Call) -> _Variant:
        return _Variant(code, sentence, preset, rules, secrets, changed)

    for end in (b"\n", b"\r\n"):
        yield variant(
            "body-trailing-newline",
            "The signature matches when a newline ends the body: it was signed, but not sent, or a "
            "proxy has removed it. Sign and send the same bytes (curl -d @file removes newlines, "
            "--data-binary does not).",
            replace(call, body=call.body + end),
        )
    if call.body.endswith((b"\n", b"\r")):
        yield variant(
            "body-trailing-newline",
            "The signature matches without the newline at the body's end: a proxy has added it. "
            "Let it pass the body on unchanged.",
            replace(call, body=call.body.rstrip(b"\r\n")),
        )
    for body in _serialisations(call.body):
        yield variant(
            "body-reserialised",
            "The signature matches the same JSON written differently: a proxy has parsed the body "
            "and written it again. Let it pass the body on unchanged.",
            replace(call, body=body),
        )
    for code, url in _urls(call, public_url):
        parts = urlsplit(url)
        yield variant(
            code,
            f"The signature matches when the URL begins with {parts.scheme}://{parts.netloc}. "
            "Change it at the sender, or set the signed URL.",
            replace(call, url=url),
        )


def _serialisations(body: bytes) -> Iterator[bytes]:
    """The JSON of a body as common libraries write it."""
    try:
        document = parse_json(body)
    except InvalidJSONError:
        return
    forms: list[tuple[int | None, tuple[str, str]]] = [
        (None, (",", ":")),
        (None, (", ", ": ")),
        (2, (",", ": ")),
        (4, (",", ": ")),
    ]
    seen = {body}
    for indent, separators in forms:
        for is_ascii in (False, True):
            text = json.dumps(document, ensure_ascii=is_ascii, indent=indent, separators=separators)
            # PHP escapes slashes.
            for each in (text, text.replace("/", "\\/")):
                written = each.encode("utf-8", "surrogatepass")
                if written not in seen:
                    seen.add(written)
                    yield written


def _urls(call: Call, public_url: str) -> Iterator[tuple[str, str]]:
    """The URL with another scheme or another host."""
    try:
        parts = urlsplit(call.url)
        public = urlsplit(public_url)
        port = parts.port
    except ValueError:
        return
    schemes = {"https": ("http", 443), "http": ("https", 80)}
    if parts.scheme not in schemes or not parts.netloc:
        return
    other, default_port = schemes[parts.scheme]
    yield "url-scheme", parts._replace(scheme=other).geturl()
    bare = parts.netloc.removesuffix(f":{port}") if port else parts.netloc
    without_www = bare.removeprefix("www.")
    given = [value for name, value in call.headers if name.lower() == "host"]
    for host in dict.fromkeys(
        (bare, f"{bare}:{default_port}", without_www, f"www.{without_www}", *given, public.netloc)
    ):
        if host and host != parts.netloc:
            yield "url-host", parts._replace(netloc=host).geturl()


def _timestamp_units(
    preset: Preset, rules: Rules, secrets: Sequence[str], call: Call
) -> Iterator[_Variant]:
    if not preset.has_timestamp:
        return
    names = {
        TimestampUnit.SECONDS: "seconds",
        TimestampUnit.MILLISECONDS: "milliseconds",
        TimestampUnit.ISO_8601: "ISO 8601",
    }
    for unit in TimestampUnit:
        if unit is not preset.timestamp_unit:
            sentence = (
                f"The signature matches and its time is right in {names[unit]}, but this sender "
                f"writes {names[preset.timestamp_unit]}. Change the unit at the sender."
            )
            other = replace(preset, timestamp_unit=unit)
            yield _Variant("timestamp-unit", sentence, other, rules, secrets, call)


def _moment(at: datetime) -> str:
    return f"at {at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
