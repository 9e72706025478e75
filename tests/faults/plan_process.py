"""A process that plans and applies the next edition of everything, to be killed meanwhile.

Prints what is live as JSON, then ``applying`` and ``applied``, each on a line.
"""

import json
import sys
from collections import Counter
from typing import Any

import django

django.setup()

from accounts.flows.api_keys import issue_api_key  # noqa: E402
from accounts.flows.organisations import create_organisation  # noqa: E402
from accounts.models import ApiKey, Organisation  # noqa: E402
from hooks.models import Hook  # noqa: E402
from jobs.models import Schedule  # noqa: E402
from scripts_engine.definition_quota import ROW_BYTES  # noqa: E402
from scripts_engine.models import Blob, Release, RunStorage, Script, ScriptVersion  # noqa: E402
from scripts_engine.plans.planning import plan_manifest  # noqa: E402
from scripts_engine.runs.spec import Author  # noqa: E402
from scripts_engine.sandbox_pool import sandbox_pool  # noqa: E402
from tests.scripts_engine.plans.manifests import (  # noqa: E402
    a_hook,
    a_schedule,
    a_script,
    applied,
    manifest,
    upload,
)

SCRIPTS, HOOKS, SCHEDULES = 60, 30, 10


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def everything(edition: int) -> dict[str, Any]:
    """Each object says its edition."""
    return manifest(
        scripts=[a_script(f"s{n}", f"return {edition} -- {n}") for n in range(SCRIPTS)],
        hooks=[a_hook(f"s{n}", "hook", callsPerMinute=1 + edition) for n in range(HOOKS)],
        schedules=[a_schedule(f"t{n}", f"s{n}", payload=str(edition)) for n in range(SCHEDULES)],
    )


def live() -> dict[str, Any]:
    """The editions of all objects with how many have it, and what counts them."""
    editions = [int(script.source.split()[1]) for script in Script.objects.all()]
    editions += [(hook.calls_per_minute or 0) - 1 for hook in Hook.objects.all()]
    editions += [int(bytes(schedule.payload)) for schedule in Schedule.objects.all()]
    sources = (*ScriptVersion.objects.all(), *Blob.objects.all())
    used = sum(ROW_BYTES + len(row.source.encode()) for row in sources)
    used += sum(release.bytes for release in Release.objects.all()) + ROW_BYTES * len(
        Hook.objects.all()
    )
    return {
        "editions": Counter(editions),
        "releases": Release.objects.count(),
        "is_count_exact": used == sum(row.definition_bytes for row in RunStorage.objects.all()),
    }


def main() -> None:
    organisation = Organisation.objects.first()
    if organisation is None:
        organisation = create_organisation("Acme")
        issue_api_key(organisation, name="deploy")
    state = live()
    say(json.dumps(state))
    edition = 1 + max(map(int, state["editions"]), default=0)
    upload(organisation, *(f"return {edition} -- {n}" for n in range(SCRIPTS)))
    author = Author(api_key=ApiKey.objects.get())
    plan = plan_manifest(organisation, everything(edition), author=author)
    say("applying")
    applied(plan, author=author)
    say("applied")
    sandbox_pool().close()


main()
