"""Which hooks still compare bodies after the upgrade."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from accounts.models import Organisation
from scripts_engine.models import Hook
from tests.factories import make_hook, make_script, set_rules

migration = import_module("scripts_engine.migrations.0018_body_hash_needs_bodies")


@pytest.mark.parametrize(
    ("rules", "after"),
    [
        ({}, ""),
        ({"methods": ["GET"]}, ""),
        ({"methods": ["GET", "POST"]}, ""),
        ({"methods": ["POST"]}, "body-hash"),
        ({"methods": ["GET"], "sender": "github"}, "body-hash"),
    ],
)
def test_bodies_of_anyone_s_get_are_no_longer_compared(
    acme: Organisation, rules: dict[str, Any], after: str
) -> None:
    hook = make_hook(make_script(acme)).hook
    set_rules(hook, idempotency="body-hash", **rules)

    migration.run_every_delivery(apps, None)

    assert Hook.objects.get(pk=hook.pk).idempotency == after
