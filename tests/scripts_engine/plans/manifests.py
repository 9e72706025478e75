"""Manifests for tests, uploaded, planned and applied as a program does it."""

import hashlib
from typing import Any

from accounts.models import ApiKey, Organisation
from accounts.scopes import EVERYTHING, Scopes
from core.http.origin import NOWHERE
from scripts_engine.models import Plan
from scripts_engine.plans.applying import Applied, apply_plan
from scripts_engine.plans.blobs import keep_blob
from scripts_engine.plans.planning import plan_manifest
from scripts_engine.runs.spec import Author
from tests.factories import make_api_key


def digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def upload(organisation: Organisation, *sources: str) -> None:
    for source in sources:
        keep_blob(organisation, digest(source), source.encode())


def a_script(name: str = "sum", source: str = "return 1", **fields: Any) -> dict[str, Any]:
    return {"name": name, "source": digest(source), **fields}


def a_hook(script: str = "sum", name: str = "orders", **fields: Any) -> dict[str, Any]:
    return {"script": script, "name": name, **fields}


def a_schedule(name: str = "nightly", script: str = "sum", **fields: Any) -> dict[str, Any]:
    return {"name": name, "script": script, "cron": "0 3 * * *", **fields}


def manifest(**sections: Any) -> dict[str, Any]:
    return {"version": 1, **sections}


def plan_of(organisation: Organisation, document: Any, **options: Any) -> Plan:
    """A plan that the key “planner” makes."""
    key = ApiKey.objects.filter(organisation=organisation, name="planner").first()
    author = Author(api_key=key or make_api_key(organisation, "planner").api_key)
    return plan_manifest(organisation, document, author=author, **options)


def planned(organisation: Organisation, *scripts: dict[str, Any], **rest: Any) -> Plan:
    """A plan of these scripts, after ``upload`` of their sources."""
    prune = rest.pop("prune", False)
    plan = plan_of(organisation, manifest(scripts=list(scripts), **rest), prune=prune)
    assert plan.problems == []
    return plan


def problems_of(organisation: Organisation, document: Any) -> list[tuple[str, str]]:
    plan = plan_of(organisation, document)
    return [(problem["path"], problem["code"]) for problem in plan.problems]


def actions_of(plan: Plan) -> list[tuple[str, str, str]]:
    return [(change["kind"], change["name"], change["action"]) for change in plan.changes]


def applied(
    plan: Plan, *, held: Scopes = EVERYTHING, author: Author | None = None, **options: Any
) -> Applied:
    if author is None:
        author = Author(api_key=make_api_key(plan.organisation, "deploy").api_key)
    return apply_plan(
        plan.organisation, plan.pk, held=held, author=author, origin=NOWHERE, **options
    )
