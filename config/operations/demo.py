"""The demo data of a first start: an administrator, a script with a library, and a hook to call."""

import secrets
from typing import NamedTuple

from django.db import transaction

from accounts.audit import command_origin
from accounts.flows.organisations import create_organisation
from accounts.flows.users import create_user, record_superuser
from accounts.models import Organisation, Role, User
from hooks.flows.hooks import issue_hook
from scripts_engine.flows.drafts import save_draft
from scripts_engine.flows.scripts import create_script
from scripts_engine.runs.spec import Author

ADMINISTRATOR_EMAIL = "admin@example.com"

LIBRARY = """\
-- What several scripts need: local money = require("money")
local money = {}

function money.total(items)
  local total = 0
  for _, item in ipairs(items) do
    total = total + item.quantity * item.price
  end
  return total
end

return money
"""

SOURCE = """\
-- Adds up an order: {"items": [{"name": "tea", "quantity": 2, "price": 4.5}]}
local money = require("money")
local order = FromJson(params.get("body"))

local total = money.total(order.items)
log.info("order of " .. #order.items .. " items, total " .. total)

return { items = #order.items, total = total }
"""

# A draft runs when it is tried, and not for calls.
DRAFT = SOURCE.replace(
    "return { items = #order.items, total = total }",
    "local shipping = total < 20 and 4.9 or 0\n"
    "return { items = #order.items, shipping = shipping, total = total + shipping }",
)

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
        author = Author(user=administrator)
        create_script(
            organisation,
            name="money",
            source=LIBRARY,
            author=author,
            is_library=True,
            origin=origin,
        )
        script = create_script(
            organisation, name="Order total", source=SOURCE, author=author, origin=origin
        )
        save_draft(script, DRAFT, author=author)
        hook, call_token = issue_hook(script, name="Demo orders", origin=origin)
    return Demo(administrator.email, password, hook.url_with(call_token))
