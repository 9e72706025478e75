"""Two plans at once: one is applied, the other conflicts."""

import pytest

from accounts.models import Organisation
from core.errors import ConflictError
from scripts_engine.flows.scripts import delete_script
from scripts_engine.models import Plan, Release, Script
from scripts_engine.plans.blobs import keep_blob
from scripts_engine.plans.planning import MAX_LIVING, plan_manifest
from scripts_engine.runs.spec import Author
from tests.concurrency import at_once
from tests.factories import make_api_key, make_organisation, make_script
from tests.scripts_engine.plans.manifests import (
    a_script,
    applied,
    digest,
    manifest,
    planned,
    upload,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def organisation() -> Organisation:
    return make_organisation("Acme")


def outcome_of(plan: Plan, author: Author) -> str:
    try:
        applied(plan, author=author)
    except ConflictError:
        return "conflict"
    return "applied"


def test_of_two_plans_of_one_script_one_conflicts(organisation: Organisation) -> None:
    make_script(organisation, "return 0", "sum")
    upload(organisation, "return 1", "return 2")
    plans = [planned(organisation, a_script("sum", f"return {number}")) for number in (1, 2)]
    author = Author(api_key=make_api_key(organisation).api_key)

    outcomes = at_once(2, lambda number: outcome_of(plans[number], author))

    assert sorted(outcomes) == ["applied", "conflict"]
    assert Script.objects.get().source == f"return {1 + outcomes.index('applied')}"
    assert Release.objects.count() == 2


def test_of_two_plans_that_create_one_script_one_conflicts(organisation: Organisation) -> None:
    upload(organisation, "return 1")
    plans = [planned(organisation, a_script()) for _ in range(2)]
    author = Author(api_key=make_api_key(organisation).api_key)

    outcomes = at_once(2, lambda number: outcome_of(plans[number], author))

    assert sorted(outcomes) == ["applied", "conflict"]
    assert Script.objects.count() == 1


def test_of_a_plan_that_changes_a_script_and_one_that_deletes_it_one_conflicts(
    organisation: Organisation,
) -> None:
    make_script(organisation, "return 0", "sum")
    upload(organisation, "return 1")
    plans = [
        planned(organisation, a_script("sum", "return 1")),
        planned(organisation, prune=True),
    ]
    author = Author(api_key=make_api_key(organisation).api_key)

    outcomes = at_once(2, lambda number: outcome_of(plans[number], author))

    assert sorted(outcomes) == ["applied", "conflict"]
    left = [script.source for script in Script.objects.existing()]
    assert left == (["return 1"] if outcomes[0] == "applied" else [])
    assert Release.objects.count() == 2


def test_a_plan_against_a_deletion_is_applied_before_it_or_not_at_all(
    organisation: Organisation,
) -> None:
    script = make_script(organisation, "return 0", "sum")
    upload(organisation, "return 1", "return 2")
    plan = planned(organisation, a_script("sum", "return 1"), a_script("new", "return 2"))
    author = Author(api_key=make_api_key(organisation).api_key)
    acts = [lambda: outcome_of(plan, author), lambda: delete_script(script)]

    is_applied = at_once(2, lambda number: acts[number]())[0] == "applied"

    names = Script.objects.existing().values_list("name", flat=True)
    changed = [release.changes.count() for release in Release.objects.order_by("number")]
    assert (list(names), changed) == ((["new"], [1, 2, 1]) if is_applied else ([], [1, 1]))


def test_one_plan_is_applied_once(organisation: Organisation) -> None:
    upload(organisation, "return 1")
    plan = planned(organisation, a_script())
    author = Author(api_key=make_api_key(organisation).api_key)

    outcomes = at_once(4, lambda number: outcome_of(plan, author))

    assert sorted(outcomes) == ["applied", "conflict", "conflict", "conflict"]
    assert Release.objects.count() == 1


def test_plans_of_different_scripts_are_both_applied(organisation: Organisation) -> None:
    upload(organisation, "return 1")
    plans = [planned(organisation, a_script(name)) for name in ("one", "two")]
    author = Author(api_key=make_api_key(organisation).api_key)

    outcomes = at_once(2, lambda number: outcome_of(plans[number], author))

    assert outcomes == ["applied", "applied"]
    assert sorted(Release.objects.values_list("number", flat=True)) == [1, 2]


def test_no_more_plans_wait_than_may(organisation: Organisation) -> None:
    author = Author(api_key=make_api_key(organisation).api_key)

    at_once(8, lambda number: plan_manifest(organisation, manifest(), author=author))

    assert Plan.objects.count() == MAX_LIVING


def test_a_source_that_is_uploaded_twice_at_once_is_kept_once(organisation: Organisation) -> None:
    source = "return 1"

    outcomes = at_once(4, lambda n: keep_blob(organisation, digest(source), source.encode()))

    assert sorted(outcomes) == [False, False, False, True]
