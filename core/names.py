"""Names that are unique among their kin, however they are spelled in Unicode and in which case."""

import logging
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Container, Hashable, Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from core.plain_text import is_encodable

logger = logging.getLogger(__name__)

MAX_NAME_CHARACTERS = 100
# What a folded character may grow to: NFC and casefold give up to three for one.
_MAX_KEY_CHARACTERS = 3 * MAX_NAME_CHARACTERS


def name_key(name: str) -> str:
    """Equal for names that count as one: NFC and Unicode's case folding."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def clean_name(name: str) -> str:
    """The name without blanks around it. Raises ``ValidationError`` by the field ``name``."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS:
        message = f"Enter a name of 1 to {MAX_NAME_CHARACTERS} characters."
        raise ValidationError({"name": ValidationError(message, code="invalid")})
    try:
        validate_name_characters(name)
    except ValidationError as error:
        raise ValidationError({"name": error}) from None
    return name


def validate_name_characters(name: str) -> None:
    """A validator of fields that refuses control characters, line ends and lone surrogates."""
    if not is_encodable(name) or any(_is_control(character) for character in name):
        raise ValidationError("Remove the control characters.", code="invalid")


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Zl", "Zp"}


def name_taken(name: str) -> ValidationError:
    """The refusal of a name that another row has."""
    message = f"There is one named “{name}” already. Choose another name."
    return ValidationError({"name": ValidationError(message, code="unique")})


def free_name(wanted: str, taken_keys: Container[str]) -> str:
    """The name, or with the first number from 2 that makes it unique: ``sum``, ``sum 2``."""
    name, number = wanted[:MAX_NAME_CHARACTERS], 1
    while name_key(name) in taken_keys:
        number += 1
        suffix = f" {number}"
        name = wanted[: MAX_NAME_CHARACTERS - len(suffix)] + suffix
    return name


class NameKey(models.CharField):
    """A column with the ``name_key`` of the row's ``name``, set whenever it is saved.

    ``save(update_fields=…)`` with ``name`` needs this column too.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**({"max_length": _MAX_KEY_CHARACTERS, "editable": False} | options))

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        key = name_key(model_instance.name)  # type: ignore[attr-defined]
        setattr(model_instance, self.attname, key)
        return key


def make_names_unique(rows: Iterable[Any], scope: Callable[[Any], Hashable], default: str) -> None:
    """Gives rows of before the rule a valid name of their own: a double gets a number.

    For migrations. ``rows`` come oldest first; ``scope`` is what a name is unique within. Each
    changed name is logged.
    """
    taken: defaultdict[Hashable, set[str]] = defaultdict(set)
    for row in rows:
        text = "".join(" " if _is_control(character) else character for character in row.name)
        wanted = text.strip()[:MAX_NAME_CHARACTERS].strip() or default
        keys = taken[scope(row)]
        name = free_name(wanted, keys)
        key = name_key(name)
        keys.add(key)
        if row.name != name:
            logger.warning("%s %s: the name %r is now %r", row._meta.label, row.pk, row.name, name)
        type(row)._base_manager.filter(pk=row.pk).update(name=name, name_key=key)
