"""A run's page: timeline, log, bodies, source and links."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.flows.organisations import remove_member
from accounts.models import Organisation, User
from hooks.models import Hook
from scripts_engine.flows.drafts import publish, save_draft
from scripts_engine.models import Run, Script, Trigger
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import NOBODY, Author, Event
from tests import factories
from tests.admin.pages import page_of, run_of, text_of


def tried(script: Script, source: str, author: Author = NOBODY) -> Run:
    event = Event(method="POST", query="", headers=(), body=b"", client_address="")
    return try_script(script, event=event, author=author, trigger=Trigger.ADMIN, source=source)


def test_the_timeline_names_the_calls_of_the_script(as_bob: Client, acme: Organisation) -> None:
    run = factories.run_lua(acme, 'store.set("a", 1) pcall(http.get, "http://10.0.0.1/")')

    text = text_of(as_bob.get(page_of(run)))

    assert "Queue time" in text
    assert '<span class="mh-bar-label">store.set a → stored 1 byte</span>' in text
    assert '<span class="mh-bar-label">GET 10.0.0.1/</span>' in text
    assert "mh-bar-failed" in text
    assert "its address is not public" in text


def test_the_setting_concerned_is_shown_with_the_error_and_in_the_timeline(
    as_bob: Client, acme: Organisation
) -> None:
    run = factories.run_lua(acme, 'http.get("http://10.0.0.1/")')

    assert text_of(as_bob.get(page_of(run))).count("HTTP_ALLOWED_NETWORKS") == 2


def test_the_subject_of_a_call_is_escaped(as_bob: Client, acme: Organisation) -> None:
    run = factories.run_lua(acme, 'store.get("<script>alert(1)</script>")')

    assert "<script>alert" not in text_of(as_bob.get(page_of(run)))


def test_log_lines_show_offset_and_date(as_bob: Client, acme: Organisation) -> None:
    run = factories.run_lua(acme, 'log.warn("low stock")')

    text = text_of(as_bob.get(page_of(run)))

    line = re.search(r'<li class="mh-log-warn">.*?low stock', text, re.DOTALL)
    assert line is not None
    assert re.search(r'title="\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} UTC">\+\d+\.\d ms', line[0])


def test_a_json_payload_is_a_tree_and_raw(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook, body=b'{"id":7}')

    text = text_of(as_bob.get(page_of(run)))

    assert '<span class="mh-json-number">7</span>' in text
    assert '<pre class="mh-pre mh-body-raw' in text
    assert "{&quot;id&quot;:7}</pre>" in text
    assert 'data-copy="request-text"' in text


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"\nafter an empty line", b">\n\nafter an empty line</pre>"),
        (b"one\r\ntwo\r", b">\none&#13;\ntwo&#13;</pre>"),
        (b"&#13;\r<", b">\n&amp;#13;&#13;&lt;</pre>"),
    ],
)
def test_white_space_survives_html(
    as_bob: Client, acme_hook: Hook, body: bytes, shown: bytes
) -> None:
    content = as_bob.get(page_of(run_of(acme_hook, body=body))).content

    assert b'id="request-text"' + shown in content
    assert b'data-copy="request-text"' in content


@pytest.mark.parametrize("body", [b"a\0b", b"\xff", b"a" * 100_001])
def test_altered_text_has_no_copy_button(as_bob: Client, acme_hook: Hook, body: bytes) -> None:
    text = text_of(as_bob.get(page_of(run_of(acme_hook, body=body))))

    assert 'id="request-text"' in text
    assert 'data-copy="request-text"' not in text


def test_a_nul_is_shown_as_a_symbol(as_bob: Client, acme_hook: Hook) -> None:
    text = text_of(as_bob.get(page_of(run_of(acme_hook, body=b"a\0b"))))

    assert "each NUL shown as \N{SYMBOL FOR NULL}" in text
    assert "a\N{SYMBOL FOR NULL}b</pre>" in text


def test_half_a_surrogate_pair_does_not_break_the_page(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook, body=rb'{"a": "\ud800"}')

    response = as_bob.get(page_of(run))

    assert response.status_code == 200
    assert "\\ud800" in text_of(response)


def test_an_unsaved_source_is_shown(as_bob: Client, acme_script: Script) -> None:
    run = tried(acme_script, "return 'not saved yet'")

    text = text_of(as_bob.get(page_of(run)))

    assert "Unsaved source" in text
    assert "return &#x27;not saved yet&#x27;" in text


def test_a_run_of_a_draft_says_so_after_the_draft_was_published(
    as_bob: Client, bob: User, acme: Organisation, acme_script: Script
) -> None:
    draft = save_draft(acme_script, "return 'a draft'", author=Author(user=bob))
    run = tried(acme_script, draft.source, Author(user=bob))
    publish(acme, [draft])

    text = " ".join(text_of(as_bob.get(page_of(run))).split())

    assert f'href="{page_of(draft)}">{draft.number}</a> (draft)' in text
    assert "Unsaved source" not in text


def test_an_error_in_an_unsaved_source_shows_that_source(
    as_bob: Client, acme_script: Script
) -> None:
    run = tried(acme_script, "-- not saved\nerror('x')")

    text = text_of(as_bob.get(page_of(run)))

    assert "Error in line 2" in text
    assert '<span class="mh-line-number">1</span>-- not saved' in text


def test_a_saved_source_links_to_its_version(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook)

    text = text_of(as_bob.get(page_of(run)))

    assert page_of(acme_hook.script.current_version) in text
    assert "Unsaved source" not in text


def test_the_page_links_to_older_and_newer_runs(
    as_bob: Client, acme: Organisation, acme_hook: Hook
) -> None:
    older, run = run_of(acme_hook), run_of(acme_hook)
    elsewhere = factories.run_lua(acme, "return 1")
    newer = run_of(acme_hook)

    text = text_of(as_bob.get(page_of(run)))

    assert f'href="{page_of(older)}" rel="prev"' in text
    assert f'href="{page_of(newer)}" rel="next"' in text
    assert page_of(elsewhere) not in text


def test_the_first_and_only_run_has_no_neighbours(as_bob: Client, acme_hook: Hook) -> None:
    text = text_of(as_bob.get(page_of(run_of(acme_hook))))

    assert 'rel="prev"' not in text
    assert 'rel="next"' not in text


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads SQLite's plan")
def test_neighbours_are_found_by_an_index(acme_hook: Hook) -> None:
    run = run_of(acme_hook)

    with CaptureQueriesContext(connection) as captured:
        Run.objects.newer_than(run)
        Run.objects.older_than(run)

    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {captured[0]['sql']}")
        newer = str(cursor.fetchall())
        cursor.execute(f"EXPLAIN QUERY PLAN {captured[1]['sql']}")
        older = str(cursor.fetchall())
    assert len(captured) == 2
    assert "run_of_script" in newer
    assert "run_of_script" in older
    assert "TEMP B-TREE" not in newer + older


def test_deeply_nested_brackets_are_shown(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook, body=b"[" * 50_000 + b"]" * 50_000)

    assert as_bob.get(page_of(run)).status_code == 200


def test_the_page_names_the_person_who_started_the_run(
    as_bob: Client, bob: User, acme_hook: Hook
) -> None:
    as_bob.post(page_of(run_of(acme_hook), "again"))

    assert "Started by" in text_of(as_bob.get(page_of(Run.objects.first())))


def test_who_left_is_named_without_the_present_address(
    as_bob: Client, acme: Organisation, acme_script: Script
) -> None:
    ann = factories.make_user(acme, "ann@example.com")
    run = tried(acme_script, acme_script.source, Author(user=ann))
    remove_member(acme, ann)
    User.objects.filter(pk=ann.pk).update(email="elsewhere@example.com")

    text = text_of(as_bob.get(page_of(run)))

    assert "Former member" in text
    assert "elsewhere@example.com" not in text


def test_a_key_is_named_without_its_public_half(as_bob: Client, acme: Organisation) -> None:
    api_key = factories.make_api_key(acme, "warehouse").api_key
    run = tried(factories.make_script(acme), "return 1", Author(api_key=api_key))

    text = text_of(as_bob.get(page_of(run)))

    assert "warehouse" in text
    assert api_key.key not in text
