"""Dispatches the host calls of one run to the capabilities."""

import logging
import uuid
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from core.database.unavailable import DatabaseUnavailable
from scripts_engine.host.capabilities import (
    SCRIPT_TIMEOUT_HINT,
    Capability,
    Effect,
    RecordedRun,
    find_function,
    registered_capabilities,
)
from scripts_engine.host.http import METHOD_OF, HttpCapability, method_of, shown_request
from scripts_engine.host.secrets import MAX_NAME_BYTES, SecretsCapability
from scripts_engine.host.store import StoreCapability
from scripts_engine.sandbox import CallNote, HostCallError
from scripts_engine.stored_values import MAX_KEY_BYTES

logger = logging.getLogger(__name__)

# Numbers of arguments, as the prelude sends them.
_ARGUMENT_COUNTS = {
    "http.request": 1,
    **dict.fromkeys(METHOD_OF, 1),
    "store.get": 1,
    "store.set": 3,
    "store.set_if_absent": 3,
    "store.delete": 1,
    "store.increment": 2,
    "store.list": 2,
    "secrets.get": 1,
}
# What a run without a record may call.
_UNRECORDED = frozenset({"http.request", *METHOD_OF})
_FAILURE_HINT = "the log of the server has the reason"
# Of the functions whose subject is not a key of the store.
_MAX_SUBJECT_BYTES = {"secrets.get": MAX_NAME_BYTES}


class RunHost:
    """The ``HostHandler`` of one run, on behalf of its organisation."""

    def __init__(self, organisation_id: uuid.UUID, *, recorded: RecordedRun | None = None) -> None:
        """``recorded`` is the run itself; without it, nothing can be stored with it."""
        self._organisation_id = organisation_id
        self._recorded = recorded
        self._capabilities: list[Capability] = []
        self._secrets: SecretsCapability | None = None
        # Functions whose failure is logged already: a script may call one a thousand times.
        self._logged: set[str] = set()

    @property
    def revealed_secrets(self) -> frozenset[bytes]:
        """Secrets that the script has read, to be redacted from what is recorded of its run."""
        return frozenset() if self._secrets is None else self._secrets.revealed

    def effects(self) -> list[Effect]:
        """What to store with the run if it succeeds. Nothing is stored yet."""
        found = (each.effect(self.revealed_secrets) for each in self._capabilities)
        return [effect for effect in found if effect is not None]

    def abandon(self) -> None:
        """Releases what the script has reserved, because its run has failed."""
        for capability in self._capabilities:
            capability.abandon()

    @cached_property
    def _functions(self) -> dict[str, Callable[..., Any]]:
        """Created on the first call, because most runs make none."""
        http = HttpCapability(self._organisation_id, lambda: self.revealed_secrets)
        store = StoreCapability(self._organisation_id)
        self._secrets = SecretsCapability(self._organisation_id)
        self._capabilities = [
            capability(self._organisation_id, self._recorded)
            for capability in registered_capabilities()
        ]
        functions: dict[str, Callable[..., Any]] = {
            "http.request": http.request,
            **{name: partial(http.send, method) for name, method in METHOD_OF.items()},
            "store.get": store.get,
            "store.set": store.set,
            "store.set_if_absent": store.set_if_absent,
            "store.delete": store.delete,
            "store.increment": store.increment,
            "store.list": store.list,
            "secrets.get": self._secrets.get,
        }
        for each in self._capabilities:
            functions |= each.functions()
        return functions

    def __call__(self, name: str, args: list[Any], *, deadline: float, note: CallNote) -> Any:
        """Calls a function. The arguments are untrusted, and each function checks its own.

        Raises ``HostCallError`` with the name of the function in front of the problem.
        """
        function = self._functions.get(name)
        if function is None:
            raise HostCallError(f"there is no {name[:40]}")
        try:
            if len(args) != _argument_count(name):
                raise HostCallError("wrong arguments")
            note.subject = subject_of(name, args)
            answer = function(*args, deadline=deadline)
            note.result = result_of(name, args, answer)
        except HostCallError as error:
            raise HostCallError(f"{name}: {error}", hint=error.hint) from None
        except TimeoutError:
            raise HostCallError(
                f"{name}: the run's time is over", hint=SCRIPT_TIMEOUT_HINT
            ) from None
        except DatabaseUnavailable as error:
            self._log_once(name, "Host call %s: %s", name, " ".join(str(error).split()))
            raise HostCallError(f"{name}: failed", hint=_FAILURE_HINT) from None
        except Exception:  # noqa: BLE001  (logged with its traceback)
            # Whatever a server, the database or a hostile argument has caused, the run continues.
            self._log_once(name, "Host call %s failed", name, exc_info=True)
            raise HostCallError(f"{name}: failed", hint=_FAILURE_HINT) from None
        return answer

    def _log_once(
        self, function: str, message: str, *arguments: str, exc_info: bool = False
    ) -> None:
        if function not in self._logged:
            self._logged.add(function)
            logger.error(message, *arguments, exc_info=exc_info)


class UnrecordedHost:
    """The ``HostHandler`` of a run that is not recorded.

    Without a record nobody could see later which secrets a script read, or why a stored value
    changed, or where queued work comes from. So it gets none of these.
    """

    revealed_secrets: frozenset[bytes] = frozenset()

    def __init__(self, organisation_id: uuid.UUID) -> None:
        self._host = RunHost(organisation_id)

    def __call__(self, name: str, args: list[Any], *, deadline: float, note: CallNote) -> Any:
        if name not in _UNRECORDED:
            raise HostCallError(f"{name[:40]}: save the script first; it works in recorded runs")
        return self._host(name, args, deadline=deadline, note=note)


def _argument_count(name: str) -> int:
    function = find_function(name)
    return _ARGUMENT_COUNTS[name] if function is None else function.arguments


def subject_of(name: str, args: list[Any]) -> bytes:
    """What the call is about: method and URL, a key, or a script. The arguments are untrusted."""
    first = args[0]
    if name in METHOD_OF or name == "http.request":
        method = METHOD_OF.get(name) or method_of(first)
        url = first.get(b"url") if isinstance(first, dict) else None
        return shown_request(method, url) if method else b""
    function = find_function(name)
    max_bytes = (
        _MAX_SUBJECT_BYTES.get(name, MAX_KEY_BYTES)
        if function is None
        else function.max_subject_bytes
    )
    return first if isinstance(first, bytes) and len(first) <= max_bytes else b""


def result_of(name: str, args: list[Any], answer: Any) -> str:
    """How a call ended that did not fail. Never the size or the value of a secret."""
    function = find_function(name)
    describe = _RESULTS.get(name) if function is None else function.describe
    return "" if describe is None else describe(args, answer)


def _counted(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


_RESULTS: dict[str, Callable[[list[Any], Any], str]] = {
    **dict.fromkeys(("http.request", *METHOD_OF), lambda _, response: str(response[b"status"])),
    "store.get": lambda _, text: "not set" if text is None else _counted(len(text), "byte"),
    "store.set": lambda args, _: f"stored {_counted(len(args[1]), 'byte')}",
    "store.set_if_absent": lambda args, was_set: (
        f"stored {_counted(len(args[1]), 'byte')}" if was_set else "already set"
    ),
    "store.increment": lambda _, number: str(number),
    "store.list": lambda _, keys: _counted(len(keys), "key"),
    "secrets.get": lambda _, secret: "not set" if secret is None else "",
}
