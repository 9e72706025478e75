"""Calls with a known outcome, in JSON files, and the trial of one against the verifier."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hooks.senders.contract import (
    Call,
    Greeting,
    Hint,
    HmacOptions,
    InvalidSecretError,
    Refusal,
    RefusalReason,
    Rules,
    Verified,
)
from hooks.senders.diagnosis import diagnose
from hooks.senders.verification import check_secret, examine

FORMAT = "moonhook-sender-vectors/1"
SHIPPED = Path(__file__).with_name("vectors.json")
_HMAC_OPTIONS = {
    "header",
    "algorithm",
    "encoding",
    "prefix",
    "template",
    "timestamp_header",
    "id_header",
    "secret_encoding",
}


class InvalidVectorsError(ValueError):
    """The file does not have the format of vectors; the text says where."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A call, the hook that it is tried against, and the outcome that it must have."""

    id: str
    rules: Rules
    secrets: tuple[str, ...]
    call: Call
    now: float
    expected: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a vector. ``problem`` is empty if that is as expected."""

    vector: Vector
    outcome: Verified | Greeting | Refusal
    hints: tuple[Hint, ...]
    problem: str


@cache
def shipped_vectors() -> tuple[Vector, ...]:
    return read_vectors(SHIPPED.read_bytes())


def read_vectors(content: bytes) -> tuple[Vector, ...]:
    """Parses a file of vectors. Raises ``InvalidVectorsError``."""
    try:
        document = json.loads(content)
    except ValueError as error:  # also UnicodeDecodeError
        raise InvalidVectorsError(f"The file is not JSON: {error}.") from error
    except RecursionError:
        raise InvalidVectorsError("The file is nested too deeply.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidVectorsError(f"The file does not say that its format is {FORMAT}.")
    rows = document.get("vectors")
    if not isinstance(rows, list) or not rows:
        raise InvalidVectorsError("The file has no list of vectors.")
    return tuple(_vector(number, row) for number, row in enumerate(rows))


def try_vector(vector: Vector, *, is_diagnosed: bool = True) -> Trial:
    """Examines the vector's call at its own time and compares the outcome.

    Hints are compared only if ``is_diagnosed``: a diagnosis takes longer than all the rest.
    """
    rules, secrets, call, now = vector.rules, vector.secrets, vector.call, vector.now
    outcome = examine(rules, secrets, call, now=now)
    hints: tuple[Hint, ...] = ()
    if is_diagnosed and isinstance(outcome, Refusal):
        hints = diagnose(rules, secrets, call, now=now, refused=outcome)
    problems = [_difference(vector.expected, outcome)]
    if is_diagnosed:
        problems.append(_missing_hint(vector.expected, hints))
    return Trial(vector, outcome, hints, "; ".join(filter(None, problems)))


def _vector(number: int, row: Any) -> Vector:
    place = f"Vector {number}"
    try:
        if isinstance(row, dict) and isinstance(row.get("id"), str):
            place = f"Vector {row['id']}"
        preset, request = _text(row["preset"]), row["request"]
        options = row.get("options") or {}
        hmac = _hmac_options(preset, options)
        url = request["url"]
        call = Call(
            method=_text(request["method"]),
            url=_text(url),
            query=urlsplit(url).query,
            headers=tuple((_text(name), _text(value)) for name, value in request["headers"]),
            body=_body(request),
        )
        rules = Rules(
            preset=preset,
            hmac=hmac,
            tolerance_seconds=options.get("tolerance_seconds"),
            verify_token=options.get("verify_token"),
            event_id_pointers=tuple(options.get("event_id_pointers", ())),
            is_handshake_expected=bool(options.get("handshake_window_open", False)),
            allowed_rate=options.get("allowed_rate"),
        )
        secrets = tuple(_as_stored(preset, hmac, _text(each)) for each in row["secrets"])
        now, expected = row.get("now"), row["expect"]
        _check_expected(expected)
        return Vector(_text(row["id"]), rules, secrets, call, float(now or 0), expected)
    except KeyError as error:
        raise InvalidVectorsError(f"{place}: {error.args[0]} is missing.") from error
    except (AttributeError, TypeError, ValueError, binascii.Error) as error:
        raise InvalidVectorsError(f"{place} does not have the format: {error}.") from error


def _as_stored(preset: str, hmac: HmacOptions | None, value: str) -> str:
    """The secret as a hook stores it; one that its sender does not take matches nothing."""
    try:
        return check_secret(preset, hmac, value)
    except InvalidSecretError:
        return value


def _hmac_options(preset: Any, options: Mapping[str, Any]) -> HmacOptions | None:
    if preset != "hmac":
        return None
    return HmacOptions(**{name: options[name] for name in options if name in _HMAC_OPTIONS})


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is not a text")
    return value


def _body(request: Mapping[str, Any]) -> bytes:
    if "body_base64" in request:
        return base64.b64decode(request["body_base64"], validate=True)
    return _text(request.get("body", "")).encode()


def _check_expected(expected: Any) -> None:
    if not isinstance(expected, dict) or expected.get("ok") not in (True, False):
        raise ValueError("expect does not say whether the call is ok")
    if not expected["ok"] and expected.get("reason") not in list(RefusalReason):
        raise ValueError("expect has no known reason")
    if not isinstance(expected.get("hint", ""), str):
        raise ValueError("hint is not a text")  # noqa: TRY004 - the file is wrong, not a type


def _difference(expected: Mapping[str, Any], outcome: Verified | Greeting | Refusal) -> str:
    """How the outcome differs from what is expected; empty if it does not."""
    got = _described(outcome)
    differing = [
        f"{name} is {got.get(name)!r}, not {value!r}"
        for name, value in _comparable(expected).items()
        if got.get(name) != value
    ]
    return "; ".join(differing)


def _missing_hint(expected: Mapping[str, Any], hints: Sequence[Hint]) -> str:
    """``hint`` is the code of a hint, or words of its sentence."""
    wanted = expected.get("hint")
    if wanted is None or any(wanted == hint.code or wanted in hint.sentence for hint in hints):
        return ""
    return f"the hints are {[hint.code for hint in hints]}, without {wanted!r}"


def _comparable(expected: Mapping[str, Any]) -> dict[str, Any]:
    names = ("ok", "reason", "event_id", "matched_secret", "status", "content_type", "body")
    wanted = {name: expected[name] for name in names if name in expected}
    if expected["ok"]:
        wanted["handshake"] = bool(expected.get("handshake", False))
    if "response_headers" in expected:
        wanted["response_headers"] = [list(pair) for pair in expected["response_headers"]]
    if "stores_secret" in expected:
        wanted["stores_secret"] = bool(expected["stores_secret"])
    if "body_signed" in expected:
        wanted["body_signed"] = expected["body_signed"]
    return wanted


def _described(outcome: Verified | Greeting | Refusal) -> dict[str, Any]:
    match outcome:
        case Refusal():
            return {"ok": False, "reason": str(outcome.reason)}
        case Verified():
            return {
                "ok": True,
                "handshake": False,
                "event_id": outcome.event_id,
                "matched_secret": outcome.matched_secret,
                "body_signed": outcome.strength == "signed",
            }
        case Greeting():
            headers: Sequence[tuple[str, str]] = outcome.headers
            types = [value for name, value in headers if name == "Content-Type"]
            return {
                "ok": True,
                "handshake": True,
                "status": outcome.status,
                "content_type": types[0] if types else None,
                "response_headers": [list(pair) for pair in headers],
                "body": outcome.body.decode(),
                "stores_secret": outcome.stores_secret is not None,
            }
