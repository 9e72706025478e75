"""Shifts a process's clock by the number of seconds in the file OTHER_CLOCK.

Python imports this before anything else where this folder is in PYTHONPATH.
"""

import os
import secrets
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import uuid_utils.compat
from django.utils import timezone

_file = Path(os.environ["OTHER_CLOCK"])
_time = time.time


def _off_by() -> float:
    return float(_file.read_text())


def _now() -> datetime:
    return datetime.now(tz=UTC) + timedelta(seconds=_off_by())


def _ordered_id() -> UUID:
    """Version 7 (RFC 9562): 48 bits of milliseconds, then chance."""
    chance = secrets.randbits(80) & ~(0xF << 76) & ~(0x3 << 62)
    return UUID(int=int(time.time() * 1000) << 80 | 0x7 << 76 | 0x2 << 62 | chance)


time.time = lambda: _time() + _off_by()
timezone.now = _now
uuid_utils.compat.uuid7 = _ordered_id
