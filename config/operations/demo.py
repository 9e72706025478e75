"""The demo data of a first start: an administrator, a script and a hook to call."""

import secrets
from typing import NamedTuple

from django.db import transaction

from accounts.actors import command_origin
from accounts.flows.organisations import create_organisation
from accounts.flows.users import create_user, record_superuser
from accounts.models import Organisation, Role, User
from scripts_engine.flows.author import Author
from scripts_engine.flows.hooks import issue_hook
from scripts_engine.flows.scripts import create_script

ADMINISTRATOR_EMAIL = "admin@example.com"

SOURCE = """\
-- Adds up an order: {"items": [{"name": "tea", "quantity": 2, "price": 4.5}]}
local order = FromJson(params.get("body"))

local total = 0
for _, item in ipairs(order.items) do
  total = total + item.quantity * item.price
end
log.info("order of " .. #order.items .. " items, total " .. total)

return { items = #order.items, total = total }
"""

PAYLOAD = '{"items": [{"name": "tea", "quantity": 2, "price": 4.5}]}'


class Demo(NamedTuple):
    """How to log in to the admin, and the URL of the hook with its call token."""

    email: str
    password: str
    call_url: str


def create_demo_once() -> Demo | None:
    """Create the demo data; ``None`` if there is already an organisation or a user."""
    if Organisation.objects.exists() or User.objects.exists():
        return None
    origin = command_origin("serve")
    with transaction.atomic():
        organisation = create_organisation("Demo", origin=origin)
        password = secrets.token_urlsafe(12)
        administrator = create_user(
            organisation,
            email=ADMINISTRATOR_EMAIL,
            name="Ada Admin",
            role=Role.ADMINISTRATOR,
            origin=origin,
        )
        administrator.is_staff = administrator.is_superuser = True
        administrator.set_password(password)
        administrator.save()
        record_superuser(administrator, origin=origin)
        script = create_script(
            organisation,
            name="Order total",
            source=SOURCE,
            author=Author(user=administrator),
            origin=origin,
        )
        hook, call_token = issue_hook(script, name="Demo orders", origin=origin)
    return Demo(administrator.email, password, hook.url_with(call_token))
