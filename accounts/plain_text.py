"""Text that every database can hold and every page can show."""

from django.core.exceptions import ValidationError


def validate_plain_text(text: str) -> None:
    """Refuses NUL, which PostgreSQL's text cannot hold, and lone surrogates, which UTF-8 cannot."""
    if "\0" in text or not is_encodable(text):
        raise ValidationError("Remove the characters that are not text.", code="invalid")


def storable(text: str) -> str:
    """The text without the characters that a database cannot hold."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
