"""What to do before anything can run."""

from dataclasses import dataclass

from django.http import HttpRequest

from accounts.admin.reach import is_superuser
from accounts.models import Organisation
from config.admin.home.inventory import Inventory
from core.admin.links import list_of
from core.admin.panels import Link
from scripts_engine.models import Hook, Script


@dataclass(frozen=True, slots=True)
class NextStep:
    text: str
    link: Link | None


def next_step(request: HttpRequest, inventory: Inventory) -> NextStep | None:
    if not inventory.has(Organisation) and is_superuser(request):
        return NextStep(
            "There is no organisation yet. Everything belongs to one: API keys, scripts, runs.",
            Link("Add organisation", list_of(Organisation, "add")),
        )
    if not inventory.has(Script):
        return NextStep(
            "There is no script yet. Write one: it runs whenever its hook is called.",
            Link("Write script", list_of(Script, "add")),
        )
    if not inventory.has(Hook):
        return NextStep(
            "No script has a hook yet. Issue one, and give its URL to whoever shall call it.",
            Link("Issue hook", list_of(Hook, "add")),
        )
    return None
