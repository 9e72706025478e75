import uuid
from datetime import datetime


def parse_uuid(text: str) -> uuid.UUID | None:
    """The UUID that the text is, in any of its spellings, or ``None``."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def first_id_at(moment: datetime) -> uuid.UUID:
    """The lowest UUID of version 7 that begins with that time."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return uuid.UUID(int=(milliseconds << 80) | (7 << 76) | (2 << 62))
