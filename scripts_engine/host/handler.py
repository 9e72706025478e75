"""The answers to one run's host calls."""

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

# How many the prelude sends.
_ARGUMENTS = {
    "http.request": 1,
    "store.get": 1,
    "store.set": 3,
    "store.delete": 1,
    "store.increment": 2,
    "secrets.get": 1,
}


class RunHost:
    """Answers for one organisation, during one run. See ``sandbox.host_call.HostHandler``."""

    def __init__(self, organisation_id: uuid.UUID) -> None:
        self._organisation_id = organisation_id
        self._secrets: SecretsCapability | None = None
        # Functions whose failure is in the log: a script may call one a thousand times.
        self._logged: set[str] = set()

    @property
    def revealed_secrets(self) -> frozenset[bytes]:
        """The secrets that the script was given: to be kept out of what is recorded of it."""
        return frozenset() if self._secrets is None else self._secrets.revealed

    @cached_property
    def _functions(self) -> dict[str, Callable[..., Any]]:
        """Made for the first call: most runs make none."""
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
        """Arguments come from a hostile process: each function checks its own."""
        function = self._functions.get(name)
        if function is None:
            raise HostCallError(f"there is no {name[:40]}")
        if len(args) != _ARGUMENTS[name]:
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
            # Whatever a server, a database or a hostile argument brings about: the run goes on.
            self._log_once(name, "Host call %s failed", name, exc_info=True)
            raise HostCallError(f"{name}: failed") from None

    def _log_once(
        self, function: str, message: str, *arguments: str, exc_info: bool = False
    ) -> None:
        if function not in self._logged:
            self._logged.add(function)
            logger.error(message, *arguments, exc_info=exc_info)
