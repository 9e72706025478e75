"""What a plan of scripts says, and what applying it brings about."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts.models import Organisation
from accounts.scopes import MissingScopeError, Scope
from core.errors import ConflictError, NotFoundError
from core.http.origin import NOWHERE
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.models import Blob, Plan, Release, RunStorage, Script, ScriptVersion
from scripts_engine.plans import planning
from scripts_engine.plans.applying import apply_plan
from scripts_engine.plans.manifest import written_manifest
from scripts_engine.plans.planning import MAX_LIVING, forget_expired_plans, plan_manifest
from scripts_engine.runs.spec import NOBODY, Author
from scripts_engine.secrets import set_secret
from tests.factories import make_api_key, make_script
from tests.scripts_engine.plans.manifests import (
    a_script,
    actions_of,
    applied,
    digest,
    manifest,
    plan_of,
    planned,
    problems_of,
    upload,
)
from tests.written import nothing_written

WRITES = frozenset({Scope.WRITE_DRAFTS, Scope.PUBLISH})


def test_a_new_script_is_created_disabled(acme: Organisation) -> None:
    upload(acme, "return 1")
    plan = planned(acme, a_script("sum", timeoutSeconds=2, maxConcurrentRuns=3))

    assert actions_of(plan) == [("Script", "sum", "Create")]
    assert not Script.objects.exists()

    result = applied(plan, note="first")

    script = Script.objects.get()
    assert (script.name, script.source, script.is_enabled) == ("sum", "return 1", False)
    assert (script.timeout_seconds, script.max_concurrent_runs) == (2.0, 3)
    assert script.current_version is not None
    assert script.current_version.published_at is not None
    assert result.release is not None
    assert (result.release.number, result.release.note) == (1, "first")
    assert [change.action for change in result.release.changes.all()] == ["Create"]
    assert not Blob.objects.exists()


def test_a_library_is_created_enabled(acme: Organisation) -> None:
    upload(acme, "return {}")

    applied(planned(acme, a_script("money", "return {}", library=True)))

    library = Script.objects.get()
    assert (library.is_library, library.is_enabled) == (True, True)


def test_a_manifest_enables_what_it_says(acme: Organisation) -> None:
    upload(acme, "return 1")

    applied(planned(acme, a_script(enabled=True)))

    assert Script.objects.get().is_enabled


def test_a_source_becomes_the_next_version(acme: Organisation) -> None:
    script = make_script(acme, "return 1", "sum")
    upload(acme, "return 2")

    plan = planned(acme, a_script("sum", "return 2"))
    applied(plan)

    assert actions_of(plan) == [("Script", "sum", "Update")]
    assert list(script.versions.values_list("number", "source")) == [
        (2, "return 2"),
        (1, "return 1"),
    ]
    script.refresh_from_db()
    assert (script.source, script.is_enabled) == ("return 2", True)


def test_left_out_settings_have_their_defaults_and_enabled_stays(acme: Organisation) -> None:
    make_script(acme, "return 1", "sum", timeout_seconds=2, max_concurrent_runs=1)

    applied(planned(acme, a_script("sum")))

    script = Script.objects.get()
    assert (script.timeout_seconds, script.max_concurrent_runs) == (10.0, None)
    assert script.is_enabled


def test_the_own_manifest_changes_nothing(acme: Organisation) -> None:
    make_script(acme, "return 1", "sum", max_concurrent_runs=4)
    make_script(acme, "return {}", "money", is_library=True)

    plan = plan_of(acme, written_manifest(acme), prune=True)
    result = applied(plan)

    assert (plan.changes, plan.problems) == ([], [])
    assert (result.release, list(result.issued)) == (None, [])


def test_a_manifest_is_in_the_order_of_names_without_defaults(acme: Organisation) -> None:
    make_script(acme, "return 1", "Sum")
    make_script(acme, "return {}", "money", is_library=True, timeout_seconds=1)

    assert written_manifest(acme) == {
        "version": 1,
        "scripts": [
            {
                "name": "money",
                "source": digest("return {}"),
                "library": True,
                "enabled": True,
                "timeoutSeconds": 1.0,
            },
            {"name": "Sum", "source": digest("return 1"), "enabled": True},
        ],
        "hooks": [],
        "schedules": [],
    }


def test_a_script_is_renamed_and_keeps_its_id(acme: Organisation) -> None:
    script = make_script(acme, "return 1", "add")
    plan = planned(acme, a_script("sum", was="add"))

    applied(plan)

    assert actions_of(plan) == [("Script", "sum", "Rename")]
    script.refresh_from_db()
    assert script.name == "sum"


def test_a_second_rename_changes_nothing(acme: Organisation) -> None:
    make_script(acme, "return 1", "sum")

    assert planned(acme, a_script("sum", was="add")).changes == []


def test_another_case_of_the_name_renames(acme: Organisation) -> None:
    make_script(acme, "return 1", "sum")

    plan = planned(acme, a_script("Sum"))
    applied(plan)

    assert actions_of(plan) == [("Script", "Sum", "Rename")]
    assert Script.objects.get().name == "Sum"


def test_a_rename_to_a_name_that_is_there_is_a_problem(acme: Organisation) -> None:
    make_script(acme, "return 1", "sum")
    make_script(acme, "return 1", "add")

    found = problems_of(acme, manifest(scripts=[a_script("sum", was="add")]))

    assert found == [("scripts[0].was", "name-taken")]


def test_only_pruning_deletes(acme: Organisation) -> None:
    make_script(acme, "return 1", "sum")
    old = make_script(acme, "return 2", "old")

    assert planned(acme, a_script("sum")).changes == []
    plan = planned(acme, a_script("sum"), prune=True)
    applied(plan)

    assert actions_of(plan) == [("Script", "old", "Delete")]
    old.refresh_from_db()
    assert old.deleted_at is not None


def test_a_script_that_never_went_live_is_not_pruned(acme: Organisation) -> None:
    script = make_script(acme, "return 1", "sum")
    Script.objects.update(current_version=None)

    plan = plan_of(acme, written_manifest(acme), prune=True)

    assert (plan.changes, plan.problems) == ([], [])
    assert script.name not in str(written_manifest(acme))


def test_a_library_stays_a_library(acme: Organisation) -> None:
    make_script(acme, "return 1", "sum")

    found = problems_of(acme, manifest(scripts=[a_script("sum", library=True)]))

    assert found == [("scripts[0].library", "fixed")]


def test_an_unknown_digest_is_a_problem(acme: Organisation) -> None:
    found = problems_of(acme, manifest(scripts=[a_script()]))

    assert found == [("scripts[0].source", "unknown-source")]


def test_a_digest_of_another_organisation_is_unknown(
    acme: Organisation, globex: Organisation
) -> None:
    upload(globex, "return 1")
    make_script(globex, "return 2")

    found = problems_of(acme, manifest(scripts=[a_script(), a_script("b", "return 2")]))

    assert found == [
        ("scripts[0].source", "unknown-source"),
        ("scripts[1].source", "unknown-source"),
    ]


def test_a_source_that_does_not_compile_is_a_problem(acme: Organisation) -> None:
    upload(acme, "return (")
    plan = plan_of(acme, manifest(scripts=[a_script("sum", "return (")]))

    [problem] = plan.problems
    assert (problem["path"], problem["code"]) == ("scripts[0].source", "does-not-compile")
    assert problem["message"].startswith("sum:1:")
    assert plan.changes == []


def test_a_plan_with_problems_is_not_applied(acme: Organisation) -> None:
    plan = plan_of(acme, {})

    with nothing_written(), pytest.raises(ValidationError):
        apply_plan(acme, plan.pk, held=WRITES, author=NOBODY, origin=NOWHERE)


def test_missing_secrets_are_named(acme: Organisation) -> None:
    set_secret(acme, name="KNOWN", value="x")
    source = 'local a, b = secrets.get("KNOWN"), secrets.get("SHOP_KEY")\nsecrets.get("no name")'
    upload(acme, source)

    plan = planned(acme, a_script("sum", source))

    assert plan.secrets_missing == ["SHOP_KEY"]


# --- Applying -------------------------------------------------------------------------------------


@pytest.fixture
def plan(acme: Organisation) -> Plan:
    upload(acme, "return 2")
    make_script(acme, "return 1", "sum")
    return planned(acme, a_script("sum", "return 2"))


def test_a_plan_is_applied_once(plan: Plan) -> None:
    author = Author(api_key=make_api_key(plan.organisation).api_key)
    applied(plan, author=author)

    with nothing_written(), pytest.raises(ConflictError, match="applied already"):
        applied(plan, author=author)


def test_an_expired_plan_is_not_found(plan: Plan) -> None:
    Plan.objects.update(expires_at=timezone.now())
    author = Author(api_key=make_api_key(plan.organisation).api_key)

    with nothing_written(), pytest.raises(NotFoundError):
        applied(plan, author=author)


def test_a_plan_of_another_organisation_is_not_found(plan: Plan, globex: Organisation) -> None:
    with nothing_written(), pytest.raises(NotFoundError):
        apply_plan(globex, plan.pk, held=WRITES, author=NOBODY, origin=NOWHERE)


def test_a_plan_conflicts_with_what_has_changed_since(plan: Plan) -> None:
    author = Author(api_key=make_api_key(plan.organisation).api_key)
    update_script(Script.objects.get(), author=NOBODY, source="return 3")

    with nothing_written(), pytest.raises(ConflictError, match="“sum”"):
        applied(plan, author=author)

    assert Script.objects.get().source == "return 3"


def test_a_plan_conflicts_with_a_new_script_of_its_name(acme: Organisation) -> None:
    upload(acme, "return 1")
    plan = planned(acme, a_script("sum"))
    make_script(acme, "return 9", "SUM")

    with pytest.raises(ConflictError, match="“sum”"):
        applied(plan)

    assert Script.objects.get().source == "return 9"


def test_a_plan_does_not_conflict_with_what_it_leaves_alone(plan: Plan) -> None:
    make_script(plan.organisation, "return 9", "other")

    applied(plan)

    assert Script.objects.get(name="sum").source == "return 2"


def test_a_source_that_is_gone_is_a_conflict(plan: Plan) -> None:
    author = Author(api_key=make_api_key(plan.organisation).api_key)
    Blob.objects.all().delete()

    with nothing_written(), pytest.raises(ConflictError, match="source"):
        applied(plan, author=author)


@pytest.mark.parametrize(
    ("held", "lacking"),
    [
        (set(), "WriteDrafts Publish"),
        ({Scope.READ_SCRIPTS, Scope.PUBLISH}, "WriteDrafts"),
        ({Scope.WRITE_DRAFTS, Scope.WRITE_HOOKS}, "Publish"),
    ],
)
def test_each_change_needs_its_scope(plan: Plan, held: set[Scope], lacking: str) -> None:
    author = Author(api_key=make_api_key(plan.organisation).api_key)

    with nothing_written(), pytest.raises(MissingScopeError) as refused:
        applied(plan, held=frozenset(held), author=author)

    assert refused.value.extensions == {"scope": lacking}


def test_a_change_of_settings_needs_no_drafts(acme: Organisation) -> None:
    make_script(acme, "return 1", "sum")
    plan = planned(acme, a_script("sum", timeoutSeconds=3))

    applied(plan, held=frozenset({Scope.PUBLISH}))

    assert Script.objects.get().timeout_seconds == 3


# --- Drafts ---------------------------------------------------------------------------------------


def test_a_plan_may_leave_drafts(plan: Plan) -> None:
    author = Author(api_key=make_api_key(plan.organisation).api_key)

    result = applied(plan, held=frozenset({Scope.WRITE_DRAFTS}), author=author, publish=False)

    script = Script.objects.get()
    assert result.release is None
    assert script.source == "return 1"
    draft = script.versions.get(source="return 2")
    assert author.api_key is not None
    assert draft.draft_of == f"key {author.api_key.pk}"
    assert draft.base == script.current_version


def test_a_draft_replaces_the_authors_other_one(plan: Plan) -> None:
    author = Author(api_key=make_api_key(plan.organisation).api_key)
    applied(plan, author=author, publish=False)
    upload(plan.organisation, "return 3")

    applied(planned(plan.organisation, a_script("sum", "return 3")), author=author, publish=False)

    drafts = ScriptVersion.objects.exclude(draft_of="")
    assert [draft.source for draft in drafts] == ["return 3"]
    assert ScriptVersion.objects.count() == 2


def test_a_draft_that_has_run_stays_as_a_version(plan: Plan) -> None:
    author = Author(api_key=make_api_key(plan.organisation).api_key)
    applied(plan, author=author, publish=False)
    ScriptVersion.objects.exclude(draft_of="").update(has_run=True)
    upload(plan.organisation, "return 3")

    applied(planned(plan.organisation, a_script("sum", "return 3")), author=author, publish=False)

    assert ScriptVersion.objects.get(source="return 2").draft_of == ""


def test_publishing_the_source_of_a_draft_ends_the_draft(plan: Plan) -> None:
    author = Author(api_key=make_api_key(plan.organisation).api_key)
    applied(plan, author=author, publish=False)

    applied(planned(plan.organisation, a_script("sum", "return 2")), author=author)

    assert Script.objects.get().source == "return 2"
    assert not ScriptVersion.objects.exclude(draft_of="").exists()


def test_a_new_script_may_begin_as_a_draft(acme: Organisation) -> None:
    upload(acme, "return 1")

    result = applied(planned(acme, a_script("sum")), publish=False)

    script = Script.objects.get()
    assert script.current_version is None
    assert [version.source for version in script.versions.all()] == ["return 1"]
    assert result.release is not None


@pytest.mark.parametrize("change", [{"timeoutSeconds": 3}, {"enabled": False}, {"name": "Sum"}])
def test_a_plan_that_changes_more_than_sources_leaves_no_drafts(
    acme: Organisation, change: dict[str, object]
) -> None:
    make_script(acme, "return 1", "sum")
    plan = planned(acme, a_script("sum") | change)
    author = Author(api_key=make_api_key(acme).api_key)

    with nothing_written(), pytest.raises(ValidationError) as refused:
        applied(plan, author=author, publish=False)

    assert "publish" in refused.value.message_dict


# --- How many, and for how long -------------------------------------------------------------------


def test_the_oldest_of_too_many_applied_plans_goes(acme: Organisation) -> None:
    plans = [plan_of(acme, manifest()) for _ in range(MAX_LIVING)]
    for plan in plans:
        applied(plan)
    last = plan_of(acme, manifest())
    applied(last)
    waiting = plan_of(acme, manifest())

    assert set(Plan.objects.all()) == {*plans[1:], last, waiting}


def test_the_oldest_of_too_many_plans_goes(acme: Organisation) -> None:
    plans = [plan_of(acme, manifest()) for _ in range(MAX_LIVING + 1)]

    kept = set(Plan.objects.values_list("pk", flat=True))

    assert kept == {plan.pk for plan in plans[1:]}


def test_plans_of_one_key_end_no_plan_of_another(acme: Organisation) -> None:
    mine, other = (Author(api_key=make_api_key(acme, name).api_key) for name in ("a", "b"))
    plan = plan_manifest(acme, manifest(), author=mine)
    done = plan_manifest(acme, manifest(), author=mine)
    applied(done, author=mine)

    for _ in range(MAX_LIVING + 1):
        applied(plan_manifest(acme, manifest(), author=other), author=other)
        plan_manifest(acme, manifest(), author=other)

    assert {plan, done} <= set(Plan.objects.all())
    assert applied(plan, author=mine).release is None


def test_an_organisation_has_no_more_plans_than_may_be_kept(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MAX_KEPT", 3)
    authors = [Author(api_key=make_api_key(acme, f"{n}").api_key) for n in range(4)]

    plans = [plan_manifest(acme, manifest(), author=author) for author in authors]

    assert set(Plan.objects.all()) == set(plans[1:])


def test_upkeep_forgets_expired_plans(plan: Plan) -> None:
    assert forget_expired_plans() == 0

    Plan.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert forget_expired_plans() == 1
    assert not Plan.objects.exists()


def test_what_a_plan_saves_is_counted_once(plan: Plan) -> None:
    before = RunStorage.objects.get().definition_bytes

    applied(plan)

    # The blob becomes a version, so only the release is more.
    release = Release.objects.order_by("number").last()
    assert release is not None
    assert RunStorage.objects.get().definition_bytes == before + release.bytes


# --- Libraries ------------------------------------------------------------------------------------


def test_a_source_is_pinned_to_a_library_of_the_same_plan(acme: Organisation) -> None:
    upload(acme, "return 1", "return require('Money')")
    scripts = [a_script("sum", "return require('Money')"), a_script("money", library=True)]

    applied(planned(acme, *scripts))

    version = Script.objects.get(name="sum").current_version
    library = Script.objects.get(name="money").current_version
    assert version is not None
    [required] = version.requirements.all()
    assert (required.name, required.library_version) == ("Money", library)


def test_a_source_is_pinned_to_the_live_version_of_a_library(acme: Organisation) -> None:
    library = make_script(acme, "return 1", "money", is_library=True)
    upload(acme, "return require('money')")

    applied(planned(acme, a_script("sum", "return require('money')")))

    version = Script.objects.get(name="sum").current_version
    assert version is not None
    assert version.requirements.get().library_version == library.current_version


def test_an_unchanged_source_keeps_the_library_that_it_has(acme: Organisation) -> None:
    upload(acme, "return 1", "return 2", "return require('money')")
    using = a_script("sum", "return require('money')")
    applied(planned(acme, using, a_script("money", "return 1", library=True)))

    plan = planned(acme, using, a_script("money", "return 2", library=True))
    applied(plan)

    assert actions_of(plan) == [("Script", "money", "Update")]
    version = Script.objects.get(name="sum").current_version
    assert version is not None
    assert version.requirements.get().library_version.source == "return 1"


def test_a_plan_conflicts_if_a_library_is_gone(acme: Organisation) -> None:
    library = make_script(acme, "return 1", "money", is_library=True)
    upload(acme, "return require('money')")
    plan = planned(acme, a_script("sum", "return require('money')"))
    author = Author(api_key=make_api_key(acme).api_key)
    delete_script(library)

    with nothing_written(), pytest.raises(ConflictError, match="library “money”"):
        applied(plan, author=author)


@pytest.mark.parametrize(
    ("source", "library", "told"),
    [
        ("require('nothing')", {}, "no library “nothing”"),
        ("require('sum')", {}, "is a script"),
        ("require('money')", {"enabled": False}, "is disabled"),
    ],
)
def test_a_library_that_does_not_resolve_is_a_problem(
    acme: Organisation, source: str, library: dict[str, bool], told: str
) -> None:
    upload(acme, source, "return {}")
    scripts = [a_script("sum", source), a_script("money", "return {}", library=True, **library)]

    [problem] = plan_of(acme, manifest(scripts=scripts)).problems

    assert (problem["path"], problem["code"]) == ("scripts[0].source", "unresolved-library")
    assert told in problem["message"]


def test_libraries_of_a_plan_that_require_each_other_are_problems(acme: Organisation) -> None:
    sources = ["return require('b')", "return require('a')"]
    upload(acme, *sources)
    scripts = [a_script("a", sources[0], library=True), a_script("b", sources[1], library=True)]

    assert problems_of(acme, manifest(scripts=scripts)) == [
        ("scripts[0].source", "unresolved-library"),
        ("scripts[1].source", "unresolved-library"),
    ]


def test_sources_that_are_too_large_together_are_a_problem(acme: Organisation) -> None:
    sources = [f"return {number} --" + "x" * 64_000 for number in range(5)]
    user = "".join(f"require('l{number}') " for number in range(5))
    upload(acme, *sources, user)
    libraries = [a_script(f"l{number}", sources[number], library=True) for number in range(5)]

    found = problems_of(acme, manifest(scripts=[a_script("sum", user), *libraries]))

    assert found == [("scripts[0].source", "unresolved-library")]


def test_a_library_of_another_organisation_does_not_resolve(
    acme: Organisation, globex: Organisation
) -> None:
    make_script(globex, "return 1", "money", is_library=True)
    upload(acme, "return require('money')")

    found = problems_of(acme, manifest(scripts=[a_script("sum", "return require('money')")]))

    assert found == [("scripts[0].source", "unresolved-library")]


def test_a_draft_requires_the_draft_of_a_library_that_is_kept(acme: Organisation) -> None:
    library, source = "return 1", "return require('money')"
    upload(acme, library, source)
    author = Author(api_key=make_api_key(acme).api_key)
    money = a_script("money", library, library=True)
    applied(planned(acme, money), author=author, publish=False)
    draft = ScriptVersion.objects.get()

    applied(planned(acme, money, a_script("sum", source)), author=author, publish=False)

    assert ScriptVersion.objects.get(source=library) == draft
    version = ScriptVersion.objects.get(source=source)
    assert version.requirements.get().library_version == draft


def test_a_library_that_does_not_compile_is_one_problem(acme: Organisation) -> None:
    upload(acme, "return (", "return require('money')")
    scripts = [
        a_script("sum", "return require('money')"),
        a_script("money", "return (", library=True),
    ]

    assert problems_of(acme, manifest(scripts=scripts)) == [
        ("scripts[1].source", "does-not-compile")
    ]
