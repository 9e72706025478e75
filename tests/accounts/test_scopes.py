"""The table of scopes and roles, and who holds what."""

import json
from itertools import pairwise

import pytest
from django.core.exceptions import ValidationError
from django.db import connection, transaction

from accounts.holders import scopes_of_person
from accounts.models import ApiKey, Membership, Organisation, Role, User
from accounts.models.scopes_field import canonical_scopes
from accounts.scopes import EVERYTHING, MEANINGS, NONE, ROLE_SCOPES, Scope, covers, scopes_named
from tests.factories import make_api_key, make_user

VIEWER = frozenset({Scope.READ_SCRIPTS})


def staff(organisation: Organisation, role: str, email: str = "vera@example.com") -> User:
    user = make_user(organisation, email, role=role)
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    return user


def test_each_scope_has_its_words_and_each_role_its_scopes() -> None:
    assert set(MEANINGS) == set(Scope)
    assert set(ROLE_SCOPES) == set(Role)


def test_each_role_has_all_of_the_one_below() -> None:
    below = [ROLE_SCOPES[role] for role in Role]

    assert all(covers(more, less) for less, more in pairwise(below))
    assert ROLE_SCOPES[Role.MEMBER] == NONE
    assert ROLE_SCOPES[Role.ADMINISTRATOR] == EVERYTHING


def test_all_covers_every_scope_and_none_but_all_covers_all() -> None:
    assert covers(EVERYTHING, Scope)
    assert not covers(frozenset(Scope) - {Scope.ALL}, [Scope.ALL])


@pytest.mark.parametrize("role", list(Role))
def test_a_role_counts_for_active_staff(acme: Organisation, role: Role) -> None:
    user = staff(acme, role)

    assert scopes_of_person(user, acme) == role.scopes


@pytest.mark.parametrize("lacks", ["is_staff", "is_active"])
def test_without_access_to_the_admin_a_role_counts_for_nothing(
    acme: Organisation, lacks: str
) -> None:
    user = staff(acme, Role.ADMINISTRATOR)
    setattr(user, lacks, False)

    assert scopes_of_person(user, acme) == NONE
    assert not user.has_perm(Scope.ALL.permission, acme)


def test_a_role_counts_in_its_organisation_only(acme: Organisation, globex: Organisation) -> None:
    user = staff(acme, Role.ADMINISTRATOR)

    assert user.has_perm(Scope.PUBLISH.permission, acme)
    assert user.has_perm(Scope.PUBLISH.permission, make_api_key(acme).api_key)
    assert not user.has_perm(Scope.PUBLISH.permission, globex)
    assert not user.has_perm(Scope.PUBLISH.permission, make_api_key(globex).api_key)
    assert scopes_of_person(user, globex) == NONE


def test_permissions_are_those_of_the_role(acme: Organisation) -> None:
    user = staff(acme, Role.VIEWER)

    assert user.get_all_permissions(acme) == {"accounts.ReadScripts"}
    assert user.has_perm("accounts.ReadScripts")
    assert not user.has_perm("accounts.ReadPayloads")
    assert not user.has_perm("accounts.NoSuchScope", acme)
    assert not user.has_perm("accounts.view_user", acme)


def test_a_lowered_role_counts_for_the_next_request(acme: Organisation) -> None:
    user = staff(acme, Role.ADMINISTRATOR)
    assert user.has_perm(Scope.PUBLISH.permission, acme)

    Membership.objects.filter(user=user).update(role=Role.VIEWER)

    next_request = User.objects.get(pk=user.pk)
    assert not next_request.has_perm(Scope.PUBLISH.permission, acme)
    assert next_request.has_perm(Scope.READ_SCRIPTS.permission, acme)


def test_a_superuser_holds_everything_everywhere(acme: Organisation) -> None:
    root = User.objects.create_superuser("root@example.com")

    assert scopes_of_person(root, acme) == EVERYTHING
    assert root.has_perm(Scope.ALL.permission, acme)


def test_a_key_holds_all_by_default(acme: Organisation) -> None:
    assert make_api_key(acme).api_key.held_scopes == EVERYTHING
    assert ApiKey.objects.get().scopes == ["All"]


@pytest.mark.parametrize("stored", [["Publish", "Everything"], "All", {"All": 1}, [["All"]], None])
def test_a_name_that_is_unknown_in_the_row_gives_nothing(
    acme: Organisation, stored: object
) -> None:
    key = make_api_key(acme).api_key
    with connection.cursor() as cursor:
        table, column = ApiKey._meta.db_table, json.dumps(stored)
        cursor.execute(f"UPDATE {table} SET scopes = %s", [column])

    held = ApiKey.objects.get(pk=key.pk).held_scopes

    assert held <= {Scope.PUBLISH}


def test_an_unknown_name_is_not_written(acme: Organisation) -> None:
    key = make_api_key(acme).api_key
    key.scopes = ["ReadScripts", "Everything"]

    with pytest.raises(ValidationError), transaction.atomic():
        key.save()
    assert ApiKey.objects.get().scopes == ["All"]


def test_names_are_stored_in_the_order_of_the_table() -> None:
    assert canonical_scopes(["Publish", "ReadScripts", "Publish"]) == ["ReadScripts", "Publish"]
    assert canonical_scopes(["Publish", "All"]) == ["All"]
    assert scopes_named(["ReadScripts", 3, None, "x"]) == VIEWER


@pytest.mark.parametrize("names", [[], ["Everything"], [None], [["All"]]])
def test_no_scope_and_unknown_scopes_are_refused(names: list[object]) -> None:
    with pytest.raises(ValidationError):
        canonical_scopes(names)
