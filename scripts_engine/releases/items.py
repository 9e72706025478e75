"""What the items of a kind say in a manifest: a table of fields, each with its check."""

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, cast

from django.core.exceptions import ValidationError
from django.db.models import Field as ModelField
from django.db.models import Model

from core.names import clean_name
from core.plain_text import validate_plain_text

Values = Mapping[str, Any]
"""The values of an item by field, as its checks returned them."""
Check = Callable[[object], Any]
"""Returns the value as states hold it. Raises ``WrongValueError``."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


class ProblemCode(StrEnum):
    """What is wrong with a place of a manifest, or with a plan."""

    TOO_LARGE = "too-large"
    TOO_MANY_ITEMS = "too-many-items"
    TOO_MANY_PROBLEMS = "too-many-problems"
    UNSUPPORTED_VERSION = "unsupported-version"
    WRONG_TYPE = "wrong-type"
    UNKNOWN_KEY = "unknown-key"
    REQUIRED = "required"
    OUT_OF_RANGE = "out-of-range"
    INVALID = "invalid"
    DUPLICATE = "duplicate"
    NAME_TAKEN = "name-taken"
    UNKNOWN_SCRIPT = "unknown-script"
    UNKNOWN_SOURCE = "unknown-source"
    UNKNOWN_VERSION = "unknown-version"
    UNFIT_SCRIPT = "unfit-script"
    FIXED = "fixed"
    DOES_NOT_COMPILE = "does-not-compile"
    UNRESOLVED_LIBRARY = "unresolved-library"


class WrongValueError(Exception):
    """A value that its field does not take. The message never contains the value."""

    def __init__(self, code: ProblemCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Refers(Enum):
    """What a field names in a manifest. States hold its id."""

    SCRIPT = "by its name"
    SOURCE = "the live version of the script itself, by SHA-256"
    VERSION = "a published version of the script that the item names, by SHA-256"


def _unset(values: Values) -> Any:
    return None


def always(value: Any) -> Callable[[Values], Any]:
    """The default of a field that is the same for every item."""
    return lambda values: value


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A key of a kind's items, and of its states."""

    name: str
    check: Check
    state_name: str = ""
    """The key in states, if it is another."""
    default: Callable[[Values], Any] = _unset
    """The value in a state where an item leaves the field out; takes the item's other values."""
    is_required: bool = False
    is_kept: bool = False
    """Whether an object keeps its value where the item leaves the field out."""
    is_written: bool = True
    """Whether manifests of an organisation hold it."""
    is_fixed: bool = False
    """Whether an object keeps its value for good."""
    refers_to: Refers | None = None

    @property
    def of_state(self) -> str:
        return self.state_name or self.name


# --- Checks ---------------------------------------------------------------------------------------


def _wrong_type(expected: str) -> WrongValueError:
    return WrongValueError(ProblemCode.WRONG_TYPE, f"Enter {expected}.")


def a_name(value: object) -> str:
    if not isinstance(value, str):
        raise _wrong_type("a text")
    try:
        return clean_name(value)
    except ValidationError as error:
        raise invalid_value(error) from None


def a_digest(value: object) -> str:
    if not isinstance(value, str):
        raise _wrong_type("a text")
    if not is_digest(value):
        message = "Enter a SHA-256 as 64 hexadecimal digits in lower case."
        raise WrongValueError(ProblemCode.INVALID, message)
    return value


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def yes_or_no(value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong_type("true or false")
    return value


def a_text(value: object) -> str:
    if not isinstance(value, str):
        raise _wrong_type("a text")
    try:
        validate_plain_text(value)
    except ValidationError as error:
        raise invalid_value(error) from None
    return value


def texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _wrong_type("a list of texts")
    return [a_text(each) for each in value]


def a_whole_number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong_type("a whole number")
    return value


def a_number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong_type("a number")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise WrongValueError(ProblemCode.OUT_OF_RANGE, "Enter a smaller number.")
    return result


def in_column(model: type[Model], name: str, check: Check) -> Check:
    """Values that the column takes."""

    column = cast("ModelField[Any, Any]", model._meta.get_field(name))

    def check_for_column(value: object) -> Any:
        checked = check(value)
        try:
            column.run_validators(checked)
        except ValidationError as error:
            raise WrongValueError(ProblemCode.OUT_OF_RANGE, " ".join(error.messages)) from None
        return checked

    return check_for_column


def one_of(choices: Mapping[str, Any] | Collection[str]) -> Check:
    """Out of these texts; a mapping gives what states hold."""

    def check(value: object) -> Any:
        if not isinstance(value, str):
            raise _wrong_type("a text")
        if value not in choices:
            message = f"Choose one of {', '.join(choices)}."
            raise WrongValueError(ProblemCode.INVALID, message)
        return choices[value] if isinstance(choices, Mapping) else value

    return check


def or_null(check: Check) -> Check:
    """``null`` sets nothing."""
    return lambda value: None if value is None else check(value)


def invalid_value(error: ValidationError) -> WrongValueError:
    """The refusal with the messages of the error, whose fields are left out."""
    return WrongValueError(ProblemCode.INVALID, " ".join(error.messages))
