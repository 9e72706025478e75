"""Text that every database can store and every page can show."""

import re
import unicodedata

from django.core.exceptions import ValidationError

_LONGEST_NAME_IN_MAIL = 80


def validate_plain_text(text: str) -> None:
    """Refuse NUL, which PostgreSQL cannot store, and lone surrogates, which are not encodable."""
    if "\0" in text or not is_encodable(text):
        raise ValidationError("Remove the characters that are not text.", code="invalid")


def storable(text: str) -> str:
    """Remove NUL, and replace lone surrogates by question marks."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def name_for_mail(name: str) -> str:
    """The name on one line, without markup and anything that mail programs turn into links.

    Keeps letters, digits and some punctuation, up to 80 characters, because the reader of the mail
    did not choose the name.
    """
    letters = "".join(char if _is_plain(char) else " " for char in name)
    # A full stop between letters may begin a domain.
    words = re.sub(r"\.(?=\S)", " ", letters).split()
    text = " ".join(words)
    is_long = len(text) > _LONGEST_NAME_IN_MAIL
    return f"{text[:_LONGEST_NAME_IN_MAIL].rstrip()}…" if is_long else text


def _is_plain(char: str) -> bool:
    """Whether this is a letter, accent or digit, or punctuation found in names."""
    return unicodedata.category(char)[0] in "LMN" or char in "&',.()+-’–"
