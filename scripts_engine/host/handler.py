"""Dispatches the host calls of one run to the capabilities."""

import logging
import uuid
from collections.abc import Callable
from functools import cached_property
from typing import Any

from core.http.unavailable import DATABASE_ERRORS
from scripts_engine.host.http import HttpCapability
from scripts_engine.host.secrets import SecretsCapability
from scripts_engine.host.store import StoreCapability
from scripts_engine.sandbox.contract import HostCallError

logger = logging.getLogger(__name__)

# Numbers of arguments, as the prelude sends them.
_ARGUMENT_COUNTS = {
    "http.request": 1,
    "store.get": 1,
    "store.set": 3,
    "store.delete": 1,
    "store.increment": 2,
    "secrets.get": 1,
}


class RunHost:
    """The ``HostHandler`` of one run, on behalf of its organisation."""

    def __init__(self, organisation_id: uuid.UUID) -> None:
        self._organisation_id = organisation_id
        self._secrets: SecretsCapability | None = None
        # Functions whose failure is logged already: a script may call one a thousand times.
        self._logged: set[str] = set()

    @property
    def revealed_secrets(self) -> frozenset[bytes]:
        """Secrets that the script has read, to be redacted from what is recorded of its run."""
        return frozenset() if self._secrets is None else self._secrets.revealed

    @cached_property
    def _functions(self) -> dict[str, Callable[..., Any]]:
        """Created on the first call, because most runs make none."""
        http = HttpCapability(self._organisation_id)
        store = StoreCapability(self._organisation_id)
        self._secrets = SecretsCapability(self._organisation_id)
        return {
            "http.request": http.request,
            "store.get": store.get,
            "store.set": store.set,
            "store.delete": store.delete,
            "store.increment": store.increment,
            "secrets.get": self._secrets.get,
        }

    def __call__(self, name: str, args: list[Any], *, deadline: float) -> Any:
        """Calls a function. The arguments are untrusted, and each function checks its own."""
        function = self._functions.get(name)
        if function is None:
            raise HostCallError(f"there is no {name[:40]}")
        if len(args) != _ARGUMENT_COUNTS[name]:
            raise HostCallError(f"{name}: wrong arguments")
        try:
            return function(*args, deadline=deadline)
        except HostCallError:
            raise
        except TimeoutError:
            raise HostCallError(f"{name}: the run's time is over") from None
        except DATABASE_ERRORS as error:
            self._log_once(name, "Host call %s: %s", name, " ".join(str(error).split()))
            raise HostCallError(f"{name}: failed") from None
        except Exception:  # noqa: BLE001  (logged with its traceback)
            # Whatever a server, the database or a hostile argument has caused, the run continues.
            self._log_once(name, "Host call %s failed", name, exc_info=True)
            raise HostCallError(f"{name}: failed") from None

    def _log_once(
        self, function: str, message: str, *arguments: str, exc_info: bool = False
    ) -> None:
        if function not in self._logged:
            self._logged.add(function)
            logger.error(message, *arguments, exc_info=exc_info)
