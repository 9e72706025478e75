"""The outbox: a directory for messages while no mail server or SMS gateway is configured.

Only the owner of its files can read them, since they contain codes.
"""

import json
import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.mail.backends.filebased import EmailBackend
from django.utils import timezone
from uuid_utils.compat import uuid7


class EmailOutbox(EmailBackend):
    """Writes the e-mails of one connection to one file."""

    stream: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _create_directory()
        super().__init__(*args, **kwargs)

    def open(self) -> bool:
        if self.stream is not None:
            return False
        path = self._get_filename()  # type: ignore[attr-defined]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.stream = os.fdopen(os.open(path, flags, 0o600), "ab")
        return True


def write_sms(phone: str, text: str) -> Path:
    """Writes one JSON file per message; file names sort by time."""
    path = _create_directory() / f"{timezone.now():%Y%m%d-%H%M%S}-{uuid7()}.sms.json"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"to": phone, "text": text}, file, indent=2)
    return path


def _create_directory() -> Path:
    """Creates the directory if it is missing, and returns it."""
    directory: Path = settings.OUTBOX_DIR
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory
