"""The scopes that fields need: one table for each schema, which every app fills at start.

``PROGRAMS`` is the table of /admin/graphql, ``PEOPLE`` that of /user/graphql. Fields that neither
names are refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest

from accounts.flows.api_keys import record_refused_scopes
from accounts.holders import scopes_of_key
from accounts.scopes import Scope, Scopes
from core.graphql.field_needs import FieldAccess, FieldNeeds, Names, Needs, needs
from core.http.origin import origin_of

PROGRAMS = FieldNeeds()
PEOPLE = FieldNeeds()

# What is no scope, because it opens nothing of its own.
ANY_KEY = "any key"
ONESELF = "the user's own session"
ANYBODY = "nothing"

any_key = needs(ANY_KEY)
oneself = needs(ONESELF)
anybody = needs(ANYBODY)


def needs_scopes(*scopes: Scope, **by_argument: Scope) -> Needs:
    """The needs of a field: scopes, all of them; ``by_argument`` where an argument is given."""
    return needs(
        *(scope.value for scope in scopes),
        **{argument: scope.value for argument, scope in by_argument.items()},
    )


def for_programs(
    type_name: str,
    default: Scope | Needs | None = None,
    *,
    is_listed: bool = False,
    fields: Mapping[str, Scope | Needs] | None = None,
) -> None:
    """Registers a type of /admin/graphql; ``is_listed``: and its pages, ``…Connection``."""
    needed = None if default is None else _needs(default)
    PROGRAMS.register(
        type_name, needed, {name: _needs(value) for name, value in (fields or {}).items()}
    )
    if is_listed:
        PROGRAMS.register(f"{type_name}Connection", needed)


def for_people(type_name: str, default: Needs | None = None, **fields: Needs) -> None:
    """Registers a type of /user/graphql."""
    PEOPLE.register(type_name, default, fields)


def _needs(needed: Scope | Needs) -> Needs:
    return needs_scopes(needed) if isinstance(needed, Scope) else needed


def register() -> None:
    """Registers the fields of this app and those of pages."""
    people, keys = Scope.READ_PEOPLE, Scope.READ_KEYS
    change_people, change_keys = Scope.WRITE_PEOPLE, Scope.WRITE_KEYS
    for_programs(
        "Query",
        fields={
            "organisation": any_key,
            "users": people,
            "user": people,
            "devices": people,
            "apiKeys": keys,
            "authEvents": Scope.READ_AUDIT,
        },
    )
    for_programs(
        "Mutation",
        fields={
            "createUser": change_people,
            "updateUser": change_people,
            "deactivateUser": change_people,
            "unlockUser": change_people,
            "addMember": change_people,
            "removeMember": change_people,
            "revokeDevice": change_people,
            "createApiKey": change_keys,
            "updateApiKey": change_keys,
            "rotateApiKey": change_keys,
            "revokeApiKey": change_keys,
        },
    )
    for_programs("PageInfo", any_key)
    for_programs("Organisation", any_key)
    for_programs("User", people, is_listed=True)
    for_programs("Membership", people)
    for_programs("Device", people, is_listed=True)
    for_programs("ApiKey", keys, is_listed=True)
    for_programs("IssuedApiKey", change_keys)
    for_programs("AuthEvent", Scope.READ_AUDIT, is_listed=True)
    for_people("Query", me=oneself, devices=oneself, invitations=oneself)
    for_people(
        "Mutation",
        sendPinCode=anybody,
        checkPinCode=anybody,
        revokeDevice=oneself,
        acceptInvitation=oneself,
        declineInvitation=oneself,
    )
    for_people("CheckPinCode", anybody)
    for name in ("User", "Membership", "Organisation", "Device", "Invitation"):
        for_people(name, oneself)


_EVERY_SCOPE: Names = frozenset({ANY_KEY, *Scope.values})


def _names(held: Scopes) -> Names:
    if Scope.ALL in held:
        return _EVERY_SCOPE
    return frozenset({ANY_KEY, *(scope.value for scope in held)}) if held else frozenset()


def _held_by_program(session: Any) -> Names:
    return _names(scopes_of_key(session.api_key))


def _held_by_person(session: Any) -> Names:
    return frozenset({ANYBODY}) if session is None else frozenset({ANYBODY, ONESELF})


def _refused(request: HttpRequest, session: Any, names: Sequence[str]) -> None:
    record_refused_scopes(session.api_key, names, origin=origin_of(request))


programs_access = FieldAccess(
    PROGRAMS, _held_by_program, order=(ANY_KEY, *Scope.values), refused=_refused
)
people_access = FieldAccess(PEOPLE, _held_by_person, order=(ANYBODY, ONESELF))
