"""Local time in the zones of the IANA database, which a locked-down child cannot read.

Role in a run: the fork server reads the files once; a child reads a zone from that memory.
"""

from __future__ import annotations

import io
import os
import re
import zoneinfo
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

MAX_ZONE_BYTES = 64 * 1024
# A zone that was read takes some kilobytes.
MAX_ZONES_READ = 16

_PART = re.compile(r"[A-Z][A-Za-z0-9_+\-]*")
_MAGIC = b"TZif"


@cache
def zone_files() -> Mapping[bytes, bytes]:
    """The compiled zones by name. The fork server calls this before its first child.

    Empty if the system has no time zone database.
    """
    files: dict[bytes, bytes] = {}
    # Many zones are aliases; their content is kept once.
    contents: dict[bytes, bytes] = {}
    for folder in zoneinfo.TZPATH:
        for name, content in _files_in(folder):
            files.setdefault(name, contents.setdefault(content, content))
    return files


def _files_in(root: str) -> Iterator[tuple[bytes, bytes]]:
    for folder, folders, files in os.walk(root):
        # Not "posix" and "right", which hold every zone once more.
        folders[:] = filter(_PART.fullmatch, folders)
        for file in filter(_PART.fullmatch, files):
            path = Path(folder, file)
            with suppress(OSError), path.open("rb", buffering=0) as opened:
                content = opened.read(MAX_ZONE_BYTES)
                if content.startswith(_MAGIC):
                    yield str(path.relative_to(root)).encode(), content


def offset_at(seconds: int, name: bytes) -> bytes | tuple[Literal[False], bytes]:
    """The offset from UTC in seconds, 1 for daylight saving time, and the abbreviation.

    Returns False and a message if the zone is unknown or has no such time.
    """
    if name not in zone_files():
        if not zone_files():
            return False, b"this server has no time zone database"
        return False, b'unknown time zone "%b"' % name[:64]
    try:
        moment = datetime.fromtimestamp(seconds, _zone(name))
    except (OverflowError, ValueError):
        return False, b"the time is out of range"
    offset = int((moment.replace(tzinfo=UTC) - moment).total_seconds())
    return f"{offset} {int(bool(moment.dst()))} {moment.tzname()}".encode()


@lru_cache(maxsize=MAX_ZONES_READ)
def _zone(name: bytes) -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo.from_file(io.BytesIO(zone_files()[name]), key=name.decode())
