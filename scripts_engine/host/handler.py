"""Dispatches the host calls of one run to the capabilities."""

import logging
import uuid
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from core.database.unavailable import DatabaseUnavailable
from scripts_engine.host.call_summary import result_of, subject_of
from scripts_engine.host.deadline import SCRIPT_TIMEOUT_HINT
from scripts_engine.host.http import METHOD_OF, HttpCapability
from scripts_engine.host.queue import Push, PushingRun, QueueCapability
from scripts_engine.host.secrets import SecretsCapability
from scripts_engine.host.store import StoreCapability
from scripts_engine.sandbox.contract import CallNote, HostCallError

logger = logging.getLogger(__name__)

# Numbers of arguments, as the prelude sends them.
_ARGUMENT_COUNTS = {
    "http.request": 1,
    **dict.fromkeys(METHOD_OF, 1),
    "queue.push": 5,
    "store.get": 1,
    "store.set": 3,
    "store.set_if_absent": 3,
    "store.delete": 1,
    "store.increment": 2,
    "store.list": 2,
    "secrets.get": 1,
}
_FAILURE_HINT = "the log of the server has the reason"


class RunHost:
    """The ``HostHandler`` of one run, on behalf of its organisation."""

    def __init__(self, organisation_id: uuid.UUID, *, pushing: PushingRun | None = None) -> None:
        """``pushing`` is the run itself; without it, nothing can be put into the queue."""
        self._organisation_id = organisation_id
        self._pushing = pushing
        self._queue: QueueCapability | None = None
        self._secrets: SecretsCapability | None = None
        # Functions whose failure is logged already: a script may call one a thousand times.
        self._logged: set[str] = set()

    @property
    def revealed_secrets(self) -> frozenset[bytes]:
        """Secrets that the script has read, to be redacted from what is recorded of its run."""
        return frozenset() if self._secrets is None else self._secrets.revealed

    @property
    def pushes(self) -> list[Push]:
        """What the script wants to have in the queue if its run succeeds. Nothing is there yet."""
        return [] if self._queue is None else self._queue.pushes

    def free_keys(self) -> None:
        """Frees the keys that the script has reserved in the queue, because its run has failed."""
        if self._queue is not None:
            self._queue.free_keys()

    @cached_property
    def _functions(self) -> dict[str, Callable[..., Any]]:
        """Created on the first call, because most runs make none."""
        http = HttpCapability(self._organisation_id, lambda: self.revealed_secrets)
        store = StoreCapability(self._organisation_id)
        self._queue = QueueCapability(self._organisation_id, self._pushing)
        self._secrets = SecretsCapability(self._organisation_id)
        return {
            "http.request": http.request,
            **{name: partial(http.send, method) for name, method in METHOD_OF.items()},
            "queue.push": self._queue.push,
            "store.get": store.get,
            "store.set": store.set,
            "store.set_if_absent": store.set_if_absent,
            "store.delete": store.delete,
            "store.increment": store.increment,
            "store.list": store.list,
            "secrets.get": self._secrets.get,
        }

    def __call__(self, name: str, args: list[Any], *, deadline: float, note: CallNote) -> Any:
        """Calls a function. The arguments are untrusted, and each function checks its own.

        Raises ``HostCallError`` with the name of the function in front of the problem.
        """
        function = self._functions.get(name)
        if function is None:
            raise HostCallError(f"there is no {name[:40]}")
        try:
            if len(args) != _ARGUMENT_COUNTS[name]:
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
