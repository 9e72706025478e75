"""The answers to one run's host calls."""

import logging
from collections.abc import Callable
from typing import Any

from accounts.models import Organisation
from config.http.unavailable import DATABASE_ERRORS
from scripts_engine.host.http import HttpCapability
from scripts_engine.host.secrets import SecretsCapability
from scripts_engine.host.store import StoreCapability
from scripts_engine.sandbox.host_call import HostCallError

logger = logging.getLogger(__name__)


class RunHost:
    """Answers for one organisation, during one run. See ``sandbox.host_call.HostHandler``."""

    def __init__(self, organisation: Organisation) -> None:
        self._http = HttpCapability()
        self._store = StoreCapability(organisation)
        self._secrets = SecretsCapability(organisation)
        self._functions: dict[str, Callable[..., Any]] = {
            "http.request": self._http.request,
            "store.get": self._store.get,
            "store.set": self._store.set,
            "store.delete": self._store.delete,
            "store.increment": self._store.increment,
            "secrets.get": self._secrets.get,
        }

    @property
    def revealed_secrets(self) -> frozenset[bytes]:
        """The secrets that the script was given: to be kept out of what is recorded of it."""
        return self._secrets.revealed

    def __call__(self, name: str, args: list[Any], *, deadline: float) -> Any:
        """Arguments come from a hostile process: each function checks its own."""
        function = self._functions.get(name)
        if function is None:
            raise HostCallError(f"there is no {name[:40]}")
        try:
            return function(*args, deadline=deadline)
        except HostCallError:
            raise
        except DATABASE_ERRORS as error:
            logger.error("Host call %s: %s", name, " ".join(str(error).split()))  # noqa: TRY400
            raise HostCallError(f"{name}: failed") from None
        except Exception:
            # Whatever a server, a database or a hostile argument brings about: the run goes on.
            logger.exception("Host call %s failed", name)
            raise HostCallError(f"{name}: failed") from None
