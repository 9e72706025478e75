"""Background work that outlasts a database that goes away."""

import logging
import time
from collections.abc import Callable

from django.db import close_old_connections

from core.http.unavailable import DATABASE_ERRORS

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 2
SAID_AGAIN_EVERY_SECONDS = 60


def outlast(work: Callable[[], None]) -> None:
    """Does the work, anew when the database goes away under it, until it ends by itself."""
    said_at: float | None = None
    while True:
        try:
            return work()
        except DATABASE_ERRORS as error:
            now = time.monotonic()
            if said_at is None or now - said_at > SAID_AGAIN_EVERY_SECONDS:
                said_at = now
                logger.error("Waiting for the database: %s", " ".join(str(error).split()))  # noqa: TRY400
        close_old_connections()
        time.sleep(PAUSE_SECONDS)
