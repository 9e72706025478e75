"""Text that every database can hold and every page can show."""

import re
import unicodedata

from django.core.exceptions import ValidationError

_LONGEST_NAME_IN_MAIL = 80


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


def name_for_mail(name: str) -> str:
    """The name on one line, without markup and without what a mail program makes a link of.

    For a name that the reader did not choose: letters, digits, a little punctuation, at most 80
    characters.
    """
    letters = "".join(char if _is_plain(char) else " " for char in name)
    # A full stop between letters may begin a domain.
    words = re.sub(r"\.(?=\S)", " ", letters).split()
    text = " ".join(words)
    is_long = len(text) > _LONGEST_NAME_IN_MAIL
    return f"{text[:_LONGEST_NAME_IN_MAIL].rstrip()}…" if is_long else text


def _is_plain(char: str) -> bool:
    """A letter, an accent, a digit, or punctuation that names have."""
    return unicodedata.category(char)[0] in "LMN" or char in "&',.()+-’–"
