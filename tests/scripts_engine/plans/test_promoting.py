"""Scripts go from one organisation to another, with what belongs to them."""

import pytest
from django.core.exceptions import ValidationError

from accounts.holders import scopes_of_person
from accounts.models import Membership, Organisation, Role, User
from accounts.scopes import MissingScopeError
from core.errors import NotFoundError
from core.http.origin import NOWHERE
from hooks.flows.hooks import issue_hook, pin_hook
from hooks.models import Hook
from jobs.schedules.schedules import create_schedule
from scripts_engine.models import Blob, Plan, Script
from scripts_engine.plans.applying import Applied, apply_plan
from scripts_engine.plans.promoting import plan_promotion
from scripts_engine.runs.spec import Author
from tests.factories import make_script, make_user
from tests.scripts_engine.plans.manifests import (
    a_script,
    actions_of,
    applied,
    planned,
    upload,
)
from tests.written import nothing_written


@pytest.fixture
def staging(globex: Organisation) -> Organisation:
    """A script that requires a library, with a hook and a schedule, and another script."""
    library, source = "return 1", "return require('money') .. (secrets.get('KEY') or '')"
    upload(globex, library, source)
    scripts = [a_script("sum", source, enabled=True), a_script("money", library, library=True)]
    applied(planned(globex, *scripts))
    script = Script.objects.get(name="sum")
    hook = issue_hook(script, name="orders", calls_per_minute=60).hook
    pin_hook(hook, script.current_version)
    create_schedule(script, name="nightly", cron="0 3 * * *")
    make_script(globex, "return 2", "other")
    return globex


@pytest.fixture
def author(acme: Organisation, staging: Organisation) -> User:
    user = make_user(acme, "dana@example.com", role=Role.AUTHOR)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    user.refresh_from_db()
    Membership.objects.create(user=user, organisation=staging, role=Role.AUTHOR)
    return user


def applied_by(user: User, plan: Plan) -> Applied:
    return apply_plan(
        plan.organisation,
        plan.pk,
        held=scopes_of_person(user, plan.organisation),
        author=Author(user=user),
        origin=NOWHERE,
    )


def test_everything_is_promoted_disabled(
    acme: Organisation, staging: Organisation, author: User
) -> None:
    plan = plan_promotion(staging, acme, user=author)
    result = applied_by(author, plan)

    assert plan.problems == []
    assert plan.secrets_missing == ["KEY"]
    scripts = {script.name: script for script in Script.objects.of_organisation(acme)}
    assert {name: script.is_enabled for name, script in scripts.items()} == {
        "money": True,
        "other": False,
        "sum": False,
    }
    hook = Hook.objects.of_organisation(acme).get()
    assert (hook.name, hook.is_enabled, hook.pinned_version) == ("orders", False, None)
    assert hook.calls_per_minute == 60
    assert len(result.issued) == 1
    version = scripts["sum"].current_version
    assert version is not None
    assert version.requirements.get().library_version == scripts["money"].current_version
    assert version.created_by == author


def test_chosen_scripts_bring_their_libraries(
    acme: Organisation, staging: Organisation, author: User
) -> None:
    plan = plan_promotion(staging, acme, user=author, names=["SUM"])

    assert sorted(actions_of(plan)) == [
        ("Hook", "orders", "Create"),
        ("Schedule", "nightly", "Create"),
        ("Script", "money", "Create"),
        ("Script", "sum", "Create"),
    ]


def test_what_is_there_keeps_its_own_switches(
    acme: Organisation, staging: Organisation, author: User
) -> None:
    applied_by(author, plan_promotion(staging, acme, user=author))
    Script.objects.of_organisation(acme).update(is_enabled=True)
    hook = Hook.objects.of_organisation(acme).get()
    pin_hook(hook, hook.script.current_version)

    plan = plan_promotion(staging, acme, user=author)

    assert (plan.problems, plan.changes) == ([], [])


def test_nothing_is_deleted(acme: Organisation, staging: Organisation, author: User) -> None:
    make_script(acme, "return 9", "own")

    plan = plan_promotion(staging, acme, user=author)

    assert "Delete" not in {action for _, _, action in actions_of(plan)}


def test_an_unknown_script_is_refused(
    acme: Organisation, staging: Organisation, author: User
) -> None:
    with nothing_written(), pytest.raises(ValidationError) as refused:
        plan_promotion(staging, acme, user=author, names=["sum", "nothing"])

    assert "names" in refused.value.message_dict


def test_an_organisation_is_not_promoted_to_itself(staging: Organisation, author: User) -> None:
    with nothing_written(), pytest.raises(ValidationError):
        plan_promotion(staging, staging, user=author)


@pytest.mark.parametrize("place", ["source", "target"])
def test_a_stranger_to_either_organisation_finds_nothing(
    acme: Organisation, staging: Organisation, author: User, place: str
) -> None:
    lost = staging if place == "source" else acme
    Membership.objects.filter(user=author, organisation=lost).delete()

    with nothing_written(), pytest.raises(NotFoundError):
        plan_promotion(staging, acme, user=author)

    assert not Blob.objects.exists()


@pytest.mark.parametrize("place", ["source", "target"])
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_only_an_author_of_both_promotes(
    acme: Organisation, staging: Organisation, author: User, place: str, role: Role
) -> None:
    lower = staging if place == "source" else acme
    Membership.objects.filter(user=author, organisation=lower).update(role=role)

    with nothing_written(), pytest.raises(MissingScopeError) as refused:
        plan_promotion(staging, acme, user=author)

    assert "Publish" in refused.value.extensions["scope"]
