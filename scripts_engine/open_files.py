"""Fits sandbox processes and connections to the open files that this process is allowed."""

import logging

from django.conf import settings

from core.server.open_files import allow_open_files

logger = logging.getLogger(__name__)

# The socket, the pidfd and the log area of a sandbox process.
FILES_PER_PROCESS = 3
# Database and log, scripts' connections to other servers, and a margin.
_OTHER_FILES = 500


def fit_to_open_files(*, connections: int = 0) -> int:
    """Raises the limit of open files as far as needed and allowed.

    If less is allowed, lowers SANDBOX_PROCESSES in proportion, and returns how many connections of
    clients fit: otherwise they would take what sandboxes and the database need.
    """
    wanted = settings.SANDBOX_PROCESSES
    needed = connections + FILES_PER_PROCESS * wanted + _OTHER_FILES
    limit = min(allow_open_files(needed), needed)
    fitting = max(wanted * limit // needed, settings.SANDBOX_SLOTS)
    if fitting < wanted:
        settings.SANDBOX_PROCESSES = fitting
        logger.warning(
            "Keeping at most %d sandbox processes instead of %d: the limit is %d open files",
            fitting,
            wanted,
            limit,
        )
    return connections * limit // needed
