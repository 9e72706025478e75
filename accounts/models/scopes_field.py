"""The column of an API key's scopes."""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from accounts.scopes import Scope, in_order, scopes_named


def every_scope() -> list[str]:
    return [Scope.ALL.value]


def canonical_scopes(names: Iterable[object]) -> list[str]:
    """The names in the order of the table, each once.

    Raises ``ValidationError`` for an unknown name, and where there is none.
    """
    given = list(names)
    if unknown := [name for name in given if not isinstance(name, str) or name not in Scope.values]:
        raise ValidationError(
            "There is no scope %(name)s.", code="invalid", params={"name": repr(unknown[0])}
        )
    if not given:
        raise ValidationError("Give at least one scope.", code="invalid")
    return [scope.value for scope in in_order(scopes_named(given))]


class ScopesField(models.JSONField):
    """A list of names of scopes, as JSON.

    Only known names are written (``ValidationError``) and read: a name that this release does not
    know gives nothing.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("default", every_scope)
        super().__init__(*args, **kwargs)

    def clean(self, value: Any, model_instance: models.Model | None) -> Any:
        return canonical_scopes(value if isinstance(value, list | tuple) else [value])

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if isinstance(value, list | tuple):
            value = canonical_scopes(value)
        return super().get_db_prep_value(value, connection, prepared)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> list[str]:
        return list(_read(value)) if isinstance(value, str) else []


@lru_cache(maxsize=1024)
def _read(text: str) -> tuple[str, ...]:
    try:
        names = json.loads(text)
    except ValueError:
        return ()
    return tuple(
        scope.value for scope in in_order(scopes_named(names if isinstance(names, list) else ()))
    )
