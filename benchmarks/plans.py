# ruff: noqa: E402  (the settings are read from an environment that is made here)
"""Measures planning and applying a manifest of 200 scripts, 40 libraries, 100 hooks, 20 schedules.

    .venv/bin/python benchmarks/plans.py

Uses an empty database: SQLite, or the one that DATABASE_URL names. Prints seconds, CPU seconds of
this process, and statements: of creating all of it, of changing all of it, and of changing one
script.
"""

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ["MOONHOOK_DATA_DIR"] = tempfile.mkdtemp()
os.environ["LOG_LEVEL"] = "WARNING"

import django

django.setup()

from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.flows.api_keys import issue_api_key
from accounts.flows.organisations import create_organisation
from accounts.models import Organisation
from accounts.scopes import EVERYTHING
from core.http.origin import NOWHERE
from scripts_engine.plans.applying import apply_plan
from scripts_engine.plans.blobs import keep_sources
from scripts_engine.plans.planning import plan_manifest
from scripts_engine.runs.spec import Author
from scripts_engine.sandbox_pool import sandbox_pool

SCRIPTS, LIBRARIES, HOOKS, SCHEDULES = 200, 40, 100, 20
# About 2 KiB, as an ordinary script has.
FILLING = 'local order = params.get("body")\n' * 60

Manifest = dict[str, list[dict[str, Any]]]
Result = TypeVar("Result")


class Uploads:
    """Sources by digest."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}

    def add(self, source: str) -> str:
        digest = hashlib.sha256(source.encode()).hexdigest()
        self.sources[digest] = source
        return digest


def manifest(edition: int, uploads: Uploads) -> Manifest:
    libraries = [
        {
            "name": f"library {number}",
            "source": uploads.add(f"{FILLING}return {{{edition}, {number}}}"),
            "library": True,
        }
        for number in range(LIBRARIES)
    ]
    scripts = [
        {
            "name": f"script {number}",
            "source": uploads.add(
                f'local library = require("library {number % LIBRARIES}")\n'
                f"{FILLING}return {edition} + {number}"
            ),
            "enabled": True,
        }
        for number in range(SCRIPTS)
    ]
    hooks = [
        {
            "script": f"script {number}",
            "name": "orders",
            "enabled": True,
            "sender": "github",
            "callsPerMinute": 60 + edition,
        }
        for number in range(HOOKS)
    ]
    schedules = [
        {"name": f"tick {number}", "script": f"script {number}", "cron": f"{edition} * * * *"}
        for number in range(SCHEDULES)
    ]
    return {"scripts": libraries + scripts, "hooks": hooks, "schedules": schedules}


def measured(title: str, action: Callable[[], Result]) -> Result:
    with CaptureQueriesContext(connection) as statements:
        began, began_cpu = time.perf_counter(), time.process_time()
        result = action()
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    times = f"{seconds:6.2f} s   {cpu_seconds:5.2f} s CPU"
    print(f"{title:<32} {times}   {len(statements):4} statements", flush=True)
    return result


def go(title: str, organisation: Organisation, author: Author, document: Manifest) -> None:
    whole = {"version": 1, **document}
    plan = measured(
        f"plan: {title}", lambda: plan_manifest(organisation, whole, author=author, prune=True)
    )
    if plan.problems:
        sys.exit(f"{plan.problems[:3]}")
    print(f"{'':<32} {len(plan.changes):4} changes")

    def apply() -> None:
        apply_plan(organisation, plan.pk, held=EVERYTHING, author=author, origin=NOWHERE)

    measured(f"apply: {title}", apply)


def main() -> None:
    call_command("migrate", verbosity=0)
    organisation = create_organisation("Acme")
    author = Author(api_key=issue_api_key(organisation, name="deploy").api_key)
    print(connection.vendor)
    for edition, title in enumerate(("create everything", "change everything")):
        uploads = Uploads()
        document = manifest(edition, uploads)
        keep_sources(organisation, uploads.sources)
        go(title, organisation, author, document)
    uploads = Uploads()
    document["scripts"][-1]["source"] = uploads.add("return 'new'")
    keep_sources(organisation, uploads.sources)
    go("change one script", organisation, author, document)
    go("change nothing", organisation, author, document)
    sandbox_pool().close()


main()
