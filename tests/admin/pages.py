"""What admin tests ask for, and what must not change when it is refused."""

import time
from typing import Any

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from accounts.models import RateCounter, User
from hooks.models import Hook
from jobs.models import Message
from scripts_engine.models import Run
from scripts_engine.runs.execution import run_script
from scripts_engine.runs.spec import Event
from tests.factories import spec_of

OUR_APPS = ("accounts", "sessions_api", "scripts_engine", "jobs", "hooks")
# Messages belong to no organisation: superusers alone see them.
OUR_MODELS = [
    model
    for app in OUR_APPS
    for model in apps.get_app_config(app).get_models()
    if model is not Message
]
CONFIRMED = {"confirmed": "yes"}


def logged_in(user: User) -> Client:
    """As after a login: with a fresh proof."""
    client = Client()
    client.force_login(user)
    prove(client, time.time())
    return client


def prove(client: Client, at: float) -> None:
    """As if the second factor, or the password, had been given at that time."""
    session = client.session
    session["proved_at"] = int(at)
    session.save()


def list_of(model: type[Any], page: str = "changelist") -> str:
    opts = model._meta
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_{page}")


def page_of(obj: Any, action: str = "change") -> str:
    opts = obj._meta
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_{action}", args=[quote(obj.pk)])


def action_on(obj: Any, action: str, **more: str) -> dict[str, Any]:
    """The body of a list's action on that one row."""
    return {"action": action, "_selected_action": str(obj.pk), **CONFIRMED, **more}


def run_of(hook: Hook, body: bytes = b"", headers: tuple[tuple[str, str], ...] = ()) -> Run:
    event = Event(
        method="POST", query="a=1", headers=headers, body=body, client_address="203.0.113.9"
    )
    return Run.objects.get(pk=run_script(spec_of(hook), event).run_id)


def everything() -> dict[str, list[dict[str, Any]]]:
    """Every row of ours, to compare before and after; and the admin's history.

    How often something was tried is no change of anything.
    """
    return {
        model.__name__: sorted(model._default_manager.values(), key=str)
        for model in [*OUR_MODELS, Message, LogEntry]
        if model is not RateCounter
    }


def text_of(response: Any) -> str:
    text: str = response.content.decode()
    return text


def nothing_inlined() -> dict[str, str]:
    """The management form of the one inline that pages have, left as it is."""
    return {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}


DEAD_LETTERS = f"{list_of(Run)}?dead_letter=yes"


def act(client: Client, action: str, runs: list[Run], address: str = DEAD_LETTERS) -> Any:
    data = {"action": action, "_selected_action": [str(run.pk) for run in runs]}
    return client.post(address, data, follow=True)


def address_of(response: Any) -> str:
    """The page to which the answer led."""
    return str(response.redirect_chain[-1][0])
