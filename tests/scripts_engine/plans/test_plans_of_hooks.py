"""Plans of hooks and schedules, and manifests from one organisation to another."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Organisation
from accounts.scopes import MissingScopeError, Scope
from core.errors import ConflictError
from hooks.flows.hooks import delete_hook, issue_hook, pin_hook, update_hook
from hooks.flows.senders import set_sender, set_signing_secret
from hooks.models import Hook
from jobs.models import Schedule
from jobs.schedules.schedules import create_schedule, update_schedule
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Plan, Script
from scripts_engine.plans.differences import shown_changes
from scripts_engine.plans.manifest import written_manifest
from scripts_engine.runs.spec import NOBODY, Author
from tests.client import Client
from tests.factories import admin_graphql, make_api_key, make_script
from tests.scripts_engine.plans.manifests import (
    a_hook,
    a_schedule,
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
SIGNED = "https://proxy.example/hook/mhc_secret"


@pytest.fixture
def shop(acme: Organisation) -> Organisation:
    """Acme with one of each, and every rule somewhere."""
    script = make_script(acme, "return 1", "sum", max_concurrent_runs=4)
    make_script(acme, "return {}", "money", is_library=True)
    orders = issue_hook(
        script,
        name="orders",
        allowed_networks=["192.0.2.0/24"],
        max_body_bytes=1_000,
        calls_per_minute=600,
        burst=10,
        max_concurrent_runs=2,
        max_attempts=3,
        reply_mode="accepted",
        accepted_status=202,
    ).hook
    set_signing_secret(set_sender(orders, sender="github"), "a secret of the sender")
    other = issue_hook(script, name="other").hook
    other = set_sender(other, sender="hmac", hmac={"header": "X-Sign", "algorithm": "sha512"})
    update_hook(other, idempotency="body-hash", signed_url=SIGNED, is_enabled=False)
    pinned = issue_hook(script, name="pinned").hook
    pin_hook(pinned, script.current_version)
    update_script(script, author=NOBODY, source="return 2")
    create_schedule(
        script,
        name="nightly",
        cron="0 3 * * *",
        time_zone="Europe/Berlin",
        payload=b"hello",
        overlap="buffer-one",
        catch_up="all",
        catch_up_window_seconds=60,
    )
    return acme


def test_the_own_manifest_of_everything_changes_nothing(shop: Organisation) -> None:
    plan = plan_of(shop, written_manifest(shop), prune=True)

    assert (plan.problems, plan.changes) == ([], [])


def test_a_manifest_holds_no_secret(shop: Organisation) -> None:
    text = str(written_manifest(shop))

    assert SIGNED not in text
    assert "mhc_" not in text
    assert "verifyToken" not in text
    assert "a secret of the sender" not in text


def test_a_manifest_makes_another_organisation_alike(
    shop: Organisation, globex: Organisation
) -> None:
    upload(globex, "return 1", "return 2", "return {}")
    document = written_manifest(shop)
    # Its version is no version of the other's script yet.
    pinned = next(hook for hook in document["hooks"] if hook["name"] == "pinned")
    pinned["pinned"] = digest("return 2")

    plan = plan_of(globex, document, prune=True)
    assert plan.problems == []
    result = applied(plan)

    assert written_manifest(globex) == document
    assert {action for _, _, action in actions_of(plan)} == {"Create"}
    assert len(result.issued) == 3
    assert Hook.objects.of_organisation(globex).get(name="pinned").pinned_version is not None


def test_a_new_hook_is_disabled_and_its_token_works_once_it_is_enabled(
    acme: Organisation, acme_token: str
) -> None:
    make_script(acme, "return 'called'", "sum")
    plan = planned(acme, hooks=[a_hook()])

    answer = admin_graphql(
        "mutation($id: ID!) { applyPlan(id: $id) { release { number }"
        " issuedHooks { callToken hook { id name enabled url } } } }",
        acme_token,
        id=str(plan.pk),
    )

    [issued] = answer.data["applyPlan"]["issuedHooks"]
    assert (issued["hook"]["name"], issued["hook"]["enabled"]) == ("orders", False)
    assert issued["callToken"] in issued["hook"]["url"]
    path = issued["hook"]["url"].partition("/hook/")[2]
    assert Client().post(f"/hook/{path}").status_code == 404
    applied(planned(acme, hooks=[a_hook(enabled=True)]))
    assert Client().post(f"/hook/{path}").content == b"called"


def test_a_hook_of_a_sender_takes_its_methods(acme: Organisation) -> None:
    make_script(acme, "return 1", "sum")

    applied(planned(acme, hooks=[a_hook(sender="github")]))

    assert Hook.objects.get().methods == ["POST"]


def test_a_changed_hook_keeps_its_url_and_secrets(shop: Organisation) -> None:
    before = Hook.objects.get(name="orders")
    document = written_manifest(shop)
    document["hooks"][0] |= {"callsPerMinute": 5, "name": "Shop orders", "was": "orders"}

    plan = plan_of(shop, document)
    applied(plan)

    after = Hook.objects.get(pk=before.pk)
    assert actions_of(plan) == [("Hook", "Shop orders", "Update")]
    assert (after.name, after.calls_per_minute) == ("Shop orders", 5)
    assert (after.digest, after.signing_secret) == (before.digest, before.signing_secret)


def test_a_hook_keeps_its_signed_url(shop: Organisation) -> None:
    document = written_manifest(shop)
    document["hooks"][1]["callsPerMinute"] = 5

    applied(plan_of(shop, document))

    other = Hook.objects.get(name="other")
    assert (other.signed_url, other.calls_per_minute) == (SIGNED, 5)


def test_differences_hide_a_signed_url(shop: Organisation) -> None:
    document = written_manifest(shop)
    document["hooks"][1]["signedUrl"] = "https://other.example/hook/mhc_secret"

    [change] = shown_changes(plan_of(shop, document))

    assert change.difference is not None
    assert change.difference.startswith("Signed URL: one at proxy.example (")
    assert "-> one at other.example (" in change.difference
    assert "mhc_secret" not in change.difference


def test_hooks_follow_a_renamed_script(shop: Organisation) -> None:
    document = written_manifest(shop)
    document["scripts"][1] |= {"name": "total", "was": "sum"}
    for item in (*document["hooks"], *document["schedules"]):
        item["script"] = "total"

    plan = plan_of(shop, document, prune=True)
    applied(plan)

    assert actions_of(plan) == [("Script", "total", "Rename")]
    assert Hook.objects.get(name="orders").script.name == "total"


def test_pruning_deletes_a_script_with_what_belongs_to_it(shop: Organisation) -> None:
    plan = plan_of(shop, manifest(), prune=True)
    result = applied(plan)

    assert {(kind, action) for kind, _, action in actions_of(plan)} == {
        ("Script", "Delete"),
        ("Hook", "Delete"),
        ("Schedule", "Delete"),
    }
    assert result.release is not None
    assert result.release.changes.count() == 6
    assert not Script.objects.of_organisation(shop).exists()
    assert not Schedule.objects.of_organisation(shop).exists()


def test_a_schedule_moves_to_a_script_that_stays(shop: Organisation) -> None:
    upload(shop, "return 3")
    document = manifest(
        scripts=[a_script("other", "return 3")], schedules=[a_schedule("nightly", "other")]
    )

    applied(plan_of(shop, document, prune=True))

    assert Schedule.objects.get().script.name == "other"


# --- Problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"hooks": [a_hook("nothing")]}, ("hooks[0].script", "unknown-script")),
        ({"schedules": [a_schedule(script="x")]}, ("schedules[0].script", "unknown-script")),
        ({"hooks": [a_hook("money")]}, ("hooks[0].script", "unfit-script")),
        ({"schedules": [a_schedule("x", "money")]}, ("schedules[0].script", "unfit-script")),
        ({"hooks": [a_hook(pinned="0" * 64)]}, ("hooks[0].pinned", "unknown-version")),
        ({"hooks": [a_hook(sender="hmac")]}, ("hooks[0].hmac", "invalid")),
        ({"hooks": [a_hook(hmac={"header": "X"})]}, ("hooks[0].hmac", "invalid")),
        ({"hooks": [a_hook(idempotency="EventId")]}, ("hooks[0].idempotency", "invalid")),
        ({"hooks": [a_hook(eventIdPointers=["/a"])]}, ("hooks[0].eventIdPointers", "invalid")),
        ({"hooks": [a_hook(), a_hook("SUM", "ORDERS")]}, ("hooks[1].name", "duplicate")),
        ({"schedules": [a_schedule(), a_schedule()]}, ("schedules[1].name", "duplicate")),
    ],
)
def test_what_does_not_fit_is_a_problem(
    shop: Organisation, sections: dict[str, Any], problem: tuple[str, str]
) -> None:
    assert problems_of(shop, manifest(**sections)) == [problem]


def test_a_script_that_would_be_pruned_is_unknown(shop: Organisation) -> None:
    plan = plan_of(shop, manifest(hooks=[a_hook("sum")]), prune=True)

    assert [(each["path"], each["code"]) for each in plan.problems] == [
        ("hooks[0].script", "unknown-script")
    ]


def test_a_script_without_its_source_is_one_problem(acme: Organisation) -> None:
    hooks = [a_hook(), a_hook(name="pinned", pinned=digest("return 1"))]

    found = problems_of(acme, manifest(scripts=[a_script()], hooks=hooks, schedules=[a_schedule()]))

    assert found == [("scripts[0].source", "unknown-source")]


def test_a_pin_to_a_source_of_another_script_is_a_problem(shop: Organisation) -> None:
    make_script(shop, "return 9", "nine")

    found = problems_of(shop, manifest(hooks=[a_hook("sum", pinned=digest("return 9"))]))

    assert found == [("hooks[0].pinned", "unknown-version")]


# --- Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("section", [{"hooks": [a_hook()]}, {"schedules": [a_schedule()]}])
def test_hooks_and_schedules_need_their_scope(acme: Organisation, section: dict[str, Any]) -> None:
    make_script(acme, "return 1", "sum")
    plan = planned(acme, **section)
    author = Author(api_key=make_api_key(acme).api_key)

    with nothing_written(), pytest.raises(MissingScopeError) as refused:
        applied(plan, held=WRITES, author=author)

    assert refused.value.extensions == {"scope": "WriteHooks"}


@pytest.mark.parametrize("section", [{"hooks": [a_hook()]}, {"schedules": [a_schedule()]}])
def test_hooks_and_schedules_are_no_drafts(acme: Organisation, section: dict[str, Any]) -> None:
    upload(acme, "return 1")
    plan = planned(acme, a_script(), **section)
    author = Author(api_key=make_api_key(acme).api_key)

    with nothing_written(), pytest.raises(ValidationError) as refused:
        applied(plan, author=author, publish=False)

    assert "publish" in refused.value.message_dict


def test_a_plan_conflicts_with_a_hook_that_has_changed(shop: Organisation) -> None:
    document = written_manifest(shop)
    document["hooks"][0]["callsPerMinute"] = 5
    plan = plan_of(shop, document)
    author = Author(api_key=make_api_key(shop).api_key)
    update_hook(Hook.objects.get(name="orders"), burst=3)

    with nothing_written(), pytest.raises(ConflictError, match="“orders”"):
        applied(plan, author=author)


def test_shorthand_of_a_cron_expression_is_no_change_of_its_fields(shop: Organisation) -> None:
    document = written_manifest(shop)
    document["schedules"][0]["cron"] = "@hourly"
    author = Author(api_key=make_api_key(shop).api_key)
    applied(plan_of(shop, document), author=author)

    again = plan_of(shop, document)

    assert Schedule.objects.get().cron == "0 * * * *"
    assert (again.problems, again.changes) == ([], [])


def test_a_plan_conflicts_with_a_schedule_that_has_changed(shop: Organisation) -> None:
    document = written_manifest(shop)
    document["schedules"][0]["cron"] = "5 5 * * *"
    plan = plan_of(shop, document)
    author = Author(api_key=make_api_key(shop).api_key)
    update_schedule(Schedule.objects.get(), cron="6 6 * * *")

    with nothing_written(), pytest.raises(ConflictError, match="“nightly”"):
        applied(plan, author=author)


def test_a_plan_conflicts_if_the_script_of_a_new_hook_is_gone(shop: Organisation) -> None:
    plan = planned(shop, hooks=[a_hook("sum", "new")])
    author = Author(api_key=make_api_key(shop).api_key)
    applied(plan_of(shop, manifest(), prune=True), author=author)

    with nothing_written(), pytest.raises(ConflictError, match="script of “new”"):
        applied(plan, author=author)


def test_a_deleted_hook_is_created_anew_with_another_token(shop: Organisation) -> None:
    document = written_manifest(shop)
    old = Hook.objects.get(name="orders")
    delete_hook(old)

    plan = plan_of(shop, document)
    [issued] = applied(plan).issued

    assert actions_of(plan) == [("Hook", "orders", "Create")]
    assert issued.object_id != old.pk


# --- Cost -----------------------------------------------------------------------------------------


def statements_of_one_change(organisation: Organisation, source: str) -> int:
    """To plan and apply a new source of one script out of all."""
    upload(organisation, source)
    author = Author(api_key=make_api_key(organisation).api_key)
    document = written_manifest(organisation)
    document["scripts"][0]["source"] = digest(source)
    with CaptureQueriesContext(
        connection,
    ) as planning:
        plan = plan_of(organisation, document, prune=True)
    assert len(plan.changes) == 1
    with CaptureQueriesContext(connection) as applying:
        applied(plan, author=author)
    return len(planning) + len(applying)


def test_statements_do_not_grow_with_what_is_unchanged(acme: Organisation) -> None:
    sources = [f"return {number}" for number in range(60)]
    upload(acme, *sources)

    def scripts(many: int) -> list[dict[str, Any]]:
        return [a_script(f"s{number}", sources[number]) for number in range(many)]

    hooks = [a_hook(f"s{number}", "hook", callsPerMinute=9) for number in range(40)]
    schedules = [a_schedule(f"t{number}", f"s{number}") for number in range(20)]
    applied(planned(acme, *scripts(2), hooks=hooks[:2], schedules=schedules[:2]))
    few = statements_of_one_change(acme, "return 'a'")
    applied(planned(acme, *scripts(60), hooks=hooks, schedules=schedules))

    many = statements_of_one_change(acme, "return 'b'")

    assert many == few


def statements_of_differences(plan: Plan) -> int:
    with CaptureQueriesContext(connection) as showing:
        assert all(change.difference for change in shown_changes(plan))
    return len(showing)


def test_statements_for_differences_do_not_grow_with_the_changes(acme: Organisation) -> None:
    sources = [f"return {number}" for number in range(60)]
    upload(acme, *sources)
    scripts = [a_script(f"s{number}", source) for number, source in enumerate(sources)]
    hooks = [a_hook(f"s{number}", "hook") for number in range(60)]
    schedules = [a_schedule(f"t{number}", f"s{number}") for number in range(60)]

    few = planned(acme, *scripts[:2], hooks=hooks[:2], schedules=schedules[:2])
    many = planned(acme, *scripts[:30], hooks=hooks[:30], schedules=schedules[:30])

    assert statements_of_differences(many) == statements_of_differences(few)
    # As many again for the second hundred.
    more = planned(acme, *scripts, hooks=hooks, schedules=schedules)
    assert statements_of_differences(more) <= 2 * statements_of_differences(few)
