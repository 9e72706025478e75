"""Files that only their owner reads, replaced as a whole."""

import os
import tempfile
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replaces the file atomically. Its mode is 0600, that of a new directory 0700."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp creates with mode 0600, so the text is never readable by others.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
