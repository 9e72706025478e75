from django.test import Client
from django.urls import reverse

from accounts.models import Organisation, User
from scripts_engine.models import Hook, Script
from tests.admin.pages import list_of, page_of, run_of, text_of

HOME = reverse("admin:index")


def test_root_is_told_to_add_an_organisation_first(as_root: Client) -> None:
    assert list_of(Organisation, "add") in text_of(as_root.get(HOME))


def test_then_to_write_a_script(as_bob: Client) -> None:
    text = text_of(as_bob.get(HOME))

    assert "There is no script yet" in text
    assert list_of(Script, "add") in text


def test_then_to_issue_a_hook(as_bob: Client, acme_script: Script) -> None:
    text = text_of(as_bob.get(HOME))

    assert "No script has a hook yet" in text
    assert list_of(Hook, "add") in text


def test_then_to_call_it(as_bob: Client, acme_hook: Hook) -> None:
    assert "Nothing ran yet" in text_of(as_bob.get(HOME))


def test_and_then_it_shows_the_latest_runs(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook)

    assert page_of(run) in text_of(as_bob.get(HOME))


def test_who_administers_nothing_is_told_whom_to_ask(as_erin: Client, acme_hook: Hook) -> None:
    response = as_erin.get(HOME)

    text = text_of(response)
    assert response.status_code == 200
    assert "You are not an administrator of any organisation" in text
    assert list_of(Script) not in text
    assert list_of(User) not in text


def test_the_sidebar_has_what_the_person_may_see(as_bob: Client, as_root: Client) -> None:
    tasks = reverse("admin:django_tasks_database_dbtaskresult_changelist")

    assert list_of(Script) in text_of(as_bob.get(HOME))
    assert tasks not in text_of(as_bob.get(HOME))
    assert tasks in text_of(as_root.get(HOME))
