import uuid


def parse_uuid(text: str) -> uuid.UUID | None:
    """The UUID that the text is, in any of its spellings, or ``None``."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
