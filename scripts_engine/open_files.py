"""Fits the number of sandbox processes to the open files that this process is allowed."""

import logging

from django.conf import settings

from core.server.open_files import allow_open_files

logger = logging.getLogger(__name__)

# The socket, the pidfd and the log area of a sandbox process.
FILES_PER_PROCESS = 3
# Database and log, scripts' connections to other servers, and a margin.
_OTHER_FILES = 500


def fit_processes_to_open_files(*, connections: int = 0) -> None:
    """Raises the limit of open files as far as needed and allowed, or lowers SANDBOX_PROCESSES.

    Sandbox processes take at most half of the files: the other half is for up to ``connections``
    clients, the database and scripts' own connections.
    """
    wanted = settings.SANDBOX_PROCESSES
    limit = allow_open_files(connections + FILES_PER_PROCESS * wanted + _OTHER_FILES)
    fitting = max(limit // 2 // FILES_PER_PROCESS, settings.SANDBOX_SLOTS)
    if fitting < wanted:
        settings.SANDBOX_PROCESSES = fitting
        logger.warning(
            "Keeping at most %d sandbox processes instead of %d: the limit is %d open files",
            fitting,
            wanted,
            limit,
        )
