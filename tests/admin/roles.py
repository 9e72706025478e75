"""Pages of the admin by their scope, and staff of each role."""

from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from accounts.admin.tenancy import TenantModelAdmin
from accounts.flows.users import update_user
from accounts.models import Organisation, Role, User
from accounts.scopes import Scope, roles_with
from hooks.models import Hook, SigningSecret
from tests import factories
from tests.admin.addresses import Address, addresses_of
from tests.admin.pages import logged_in
from tests.admin.walk import OURS

PARTIAL = [Role.VIEWER, Role.OPERATOR, Role.AUTHOR]
by_role = pytest.mark.parametrize("role", PARTIAL)


def page_admin(model: type) -> TenantModelAdmin:
    found: Any = admin.site.get_model_admin(model)
    assert isinstance(found, TenantModelAdmin)
    return found


def page_name(model: type, address: Address) -> str:
    name: str = page_admin(model).page_of_url(address.name)
    return name


def scope_of(model: type, address: Address) -> Scope:
    return page_admin(model).scope_of_page(page_name(model, address)) or Scope.ALL


def every_page() -> list[tuple[type, Address]]:
    return [(model, address) for model in OURS for address in addresses_of(model)]


def closed_pages(role: Role) -> list[tuple[type, Address, Scope]]:
    """The pages whose scope the role has not."""
    return [
        (model, address, scope)
        for model, address in every_page()
        if (scope := page_admin(model).scope_of_page(page_name(model, address)))
        and role not in roles_with(scope)
    ]


def make_staff(organisation: Organisation, role: Role) -> User:
    email = f"{role.value}@{organisation.name.lower()}.example"
    user = factories.make_user(organisation, email, name=role.label)
    update_user(organisation, user, role=role)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    return User.objects.get(pk=user.pk)


def client_of(organisation: Organisation, role: Role) -> Client:
    return logged_in(make_staff(organisation, role))


def address_in(rows: dict[type, Any], model: type, address: Address) -> str:
    if "secret_id" in address.converters:
        secret = SigningSecret.objects.filter(hook=rows[Hook]).live().get()
        return reverse("admin:hooks_hook_end_secret", args=[rows[Hook].pk, secret.pk])
    return address.of(rows, rows[model])
