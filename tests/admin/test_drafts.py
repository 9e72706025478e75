"""Drafts in the editor: saved apart from what is live, and never over what somebody else did."""

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import Organisation, Role, User
from scripts_engine.flows.drafts import save_draft
from scripts_engine.flows.scripts import create_script, update_script
from scripts_engine.models import Release, Script, ScriptVersion
from scripts_engine.runs.spec import NOBODY, Author
from tests import factories
from tests.admin.pages import CONFIRMED, everything, list_of, page_of, text_of


@pytest.fixture
def ann(acme: Organisation) -> User:
    """Another author of Acme."""
    ann = factories.make_user(acme, "ann@example.com", name="Ann")
    ann.memberships.update(role=Role.AUTHOR)
    ann.is_staff = True
    ann.save()
    return ann


def shown_on(client: Client, script: Script) -> dict[str, Any]:
    """What the page keeps of the script and the draft that it shows."""
    form = client.get(page_of(script)).context["adminform"].form
    return {name: form.initial[name] for name in ("expected_revision", "seen_draft", "base")}


def post_draft(client: Client, script: Script, source: str, shown: dict[str, Any]) -> Any:
    body = {**shown, "source": source}
    return client.post(page_of(script, "draft"), body, content_type="application/json")


def publish(client: Client, script: Script, source: str, shown: dict[str, Any]) -> Any:
    form = {"name": script.name, "timeout_seconds": "10", "is_enabled": "on"}
    return client.post(page_of(script), {**form, **shown, "source": source})


def test_draft_is_saved_and_what_is_live_stays(as_bob: Client, acme_script: Script) -> None:
    answer = post_draft(as_bob, acme_script, "return 2\r\n", shown_on(as_bob, acme_script))

    assert answer.status_code == 200
    assert "+return 2" in answer.json()["html"]
    draft = ScriptVersion.objects.drafts().get()
    assert (draft.source, draft.base_id) == ("return 2\n", acme_script.current_version_id)
    acme_script.refresh_from_db()
    assert acme_script.source == 'return params.get("body")'


def test_page_opens_the_own_draft_and_says_so(as_bob: Client, acme_script: Script) -> None:
    post_draft(as_bob, acme_script, "return 'draft'", shown_on(as_bob, acme_script))

    page = as_bob.get(page_of(acme_script))

    assert page.context["adminform"].form.initial["source"] == "return 'draft'"
    line = re.sub(r"<[^>]+>", "", text_of(page))
    assert "The editor holds your draft, saved just now, begun on version 1." in line


def test_draft_of_another_is_listed_and_not_opened(
    as_bob: Client, acme_script: Script, ann: User
) -> None:
    draft = save_draft(acme_script, "return 'anns'", author=Author(user=ann))

    page = as_bob.get(page_of(acme_script))

    assert page.context["adminform"].form.initial["source"] == acme_script.source
    assert page_of(draft, "publish") in text_of(page)
    assert "ann@example.com" in text_of(page)


def test_source_that_does_not_compile_is_no_draft(as_bob: Client, acme_script: Script) -> None:
    answer = post_draft(as_bob, acme_script, "return (", shown_on(as_bob, acme_script))

    assert answer.status_code == 400
    assert answer.json()["line"] == 1
    assert not ScriptVersion.objects.drafts().exists()


def test_malformed_draft_is_refused(as_bob: Client, acme_script: Script) -> None:
    answer = as_bob.post(page_of(acme_script, "draft"), b"[", content_type="application/json")

    assert answer.status_code == 400
    assert not ScriptVersion.objects.drafts().exists()


def test_draft_after_another_published_is_a_conflict_with_both_sources(
    as_bob: Client, acme_script: Script, ann: User
) -> None:
    shown = shown_on(as_bob, acme_script)
    update_script(acme_script, author=Author(user=ann), source="return 'anns'")
    before = everything()

    answer = post_draft(as_bob, acme_script, "return 'bobs'", shown)

    assert answer.status_code == 409
    conflict = answer.json()["conflict"]
    assert "return &#x27;anns&#x27;" in conflict
    assert "return &#x27;bobs&#x27;" in conflict
    assert "&gt;&gt;&gt;&gt;&gt;&gt;&gt; version 2, live" in conflict
    assert everything() == before


def test_draft_after_the_conflict_was_shown_is_saved(
    as_bob: Client, acme_script: Script, ann: User
) -> None:
    shown = shown_on(as_bob, acme_script)
    update_script(acme_script, author=Author(user=ann), source="return 'anns'")
    conflict = post_draft(as_bob, acme_script, "return 'bobs'", shown).json()

    answer = post_draft(
        as_bob, acme_script, "return 'both'", {**conflict["shown"], "has_compared": True}
    )

    assert answer.status_code == 200
    acme_script.refresh_from_db()
    assert ScriptVersion.objects.drafts().get().base_id == acme_script.current_version_id


def test_draft_of_another_window_is_not_overwritten(as_bob: Client, acme_script: Script) -> None:
    shown = shown_on(as_bob, acme_script)
    post_draft(as_bob, acme_script, "return 'first window'", shown)

    answer = post_draft(as_bob, acme_script, "return 'second window'", shown)

    assert answer.status_code == 409
    assert "Your draft from another window" in answer.json()["conflict"]
    assert ScriptVersion.objects.drafts().get().source == "return 'first window'"


def test_page_says_what_went_live_since_the_draft_was_begun(
    as_bob: Client, acme_script: Script, ann: User
) -> None:
    post_draft(as_bob, acme_script, "return 'bobs'", shown_on(as_bob, acme_script))
    update_script(acme_script, author=Author(user=ann), source="return 'anns'")

    text = text_of(as_bob.get(page_of(acme_script)))

    assert "has gone live since" in text
    assert "compare them before you publish" in text


def test_publishing_ends_the_draft_as_one_release(
    as_bob: Client, bob: User, acme_script: Script
) -> None:
    post_draft(as_bob, acme_script, "return 2", shown_on(as_bob, acme_script))
    shown = shown_on(as_bob, acme_script) | {"note": "Twice as much"}

    answer = publish(as_bob, acme_script, "return 2", shown)

    assert answer.status_code == 302
    acme_script.refresh_from_db()
    assert acme_script.source == "return 2"
    assert not ScriptVersion.objects.drafts().exists()
    release = Release.objects.first()
    assert release is not None
    assert (release.note, release.actor_label) == ("Twice as much", bob.email)


def test_publishing_what_was_typed_after_the_draft_replaces_it(
    as_bob: Client, acme_script: Script
) -> None:
    post_draft(as_bob, acme_script, "return 2", shown_on(as_bob, acme_script))

    publish(as_bob, acme_script, "return 3", shown_on(as_bob, acme_script))

    acme_script.refresh_from_db()
    assert acme_script.source == "return 3"
    assert not ScriptVersion.objects.drafts().exists()


def test_publishing_over_another_is_a_conflict_that_keeps_what_was_typed(
    as_bob: Client, acme_script: Script, ann: User
) -> None:
    shown = shown_on(as_bob, acme_script)
    update_script(acme_script, author=Author(user=ann), source="return 'anns'", timeout_seconds=20)
    before = everything()

    answer = publish(as_bob, acme_script, "return 'bobs'", shown)

    text = text_of(answer)
    assert answer.status_code == 200
    assert "was changed by" in text
    assert "Time limit: now 20 s, in your form 10 s." in text
    assert text.count("return &#x27;anns&#x27;") == 2
    assert text.count("return &#x27;bobs&#x27;") == 3
    assert everything() == before


def test_another_authors_draft_is_published_with_a_note(
    as_bob: Client, acme_script: Script, ann: User
) -> None:
    draft = save_draft(acme_script, "return 'anns'", author=Author(user=ann))

    answer = as_bob.post(page_of(draft, "publish"), {**CONFIRMED, "note": "For Ann"})

    assert answer["Location"] == page_of(acme_script)
    acme_script.refresh_from_db()
    assert acme_script.source == "return 'anns'"
    assert Release.objects.values_list("note", flat=True).first() == "For Ann"


def test_draft_that_is_behind_is_published_by_who_sees_what_it_replaces(
    as_bob: Client, acme_script: Script, ann: User
) -> None:
    draft = save_draft(acme_script, "return 'anns'", author=Author(user=ann))
    address = page_of(draft, "publish")
    unaware = as_bob.get(address)
    update_script(acme_script, source="return 'mine'", author=NOBODY)
    refused = as_bob.post(address, {**CONFIRMED, "note": "For Ann", "expected_revision": 1})
    kept = Script.objects.get().source
    again = sent_again(refused)
    answer = as_bob.post(address, {**CONFIRMED, **again})

    assert "went live after this draft" not in text_of(unaware)
    assert "was changed by Moonhook" in text_of(refused)
    assert "Version 3 went live after this draft was begun" in text_of(refused)
    assert (kept, again) == ("return 'mine'", {"note": "For Ann", "expected_revision": "2"})
    assert answer["Location"] == page_of(acme_script)
    assert Script.objects.get().source == "return 'anns'"


def sent_again(page: Any) -> dict[str, str]:
    """What the form of a confirmation has, as a browser would send it."""
    form = page.context["form"]
    return {field.name: str(field.value()) for field in form}


def test_asking_to_publish_publishes_nothing(
    as_bob: Client, acme_script: Script, ann: User
) -> None:
    draft = save_draft(acme_script, "return 'anns'", author=Author(user=ann))

    answer = as_bob.get(page_of(draft, "publish"))

    assert answer.status_code == 200
    acme_script.refresh_from_db()
    assert acme_script.current_version_id != draft.pk


def test_own_draft_is_discarded(as_bob: Client, bob: User, acme_script: Script) -> None:
    draft = save_draft(acme_script, "return 2", author=Author(user=bob))

    answer = as_bob.post(page_of(draft, "discard"), CONFIRMED)

    assert answer["Location"] == page_of(acme_script)
    assert not ScriptVersion.objects.filter(pk=draft.pk).exists()


def test_draft_of_globex_is_out_of_reach(as_bob: Client, globex: Organisation) -> None:
    script = factories.make_script(globex, "return 1", "theirs")

    answer = post_draft(as_bob, script, "return 2", {"expected_revision": 1})

    assert answer.status_code == 404
    assert not ScriptVersion.objects.drafts().exists()


def test_page_tells_which_version_is_live_since_when_and_by_whom(
    as_bob: Client, bob: User, acme_script: Script
) -> None:
    publish(as_bob, acme_script, "return 2", shown_on(as_bob, acme_script))
    release = Release.objects.first()

    page, listed = as_bob.get(page_of(acme_script)), as_bob.get(list_of(Script))

    assert "is live, published" in text_of(page)
    assert f'by {bob.email} in <a class="text-link" href="{page_of(release)}">' in text_of(page)
    assert re.search(r"Version 2, <time [^>]*>just now</time>", text_of(listed))


def test_library_has_no_try_out_and_names_its_dependents(
    as_bob: Client, acme: Organisation
) -> None:
    answer = as_bob.post(
        list_of(Script, "add"),
        {"organisation": str(acme.pk), "name": "prices", "source": "return {}", "library": "on"}
        | {"timeout_seconds": "10", "is_enabled": "on"},
    )

    assert answer.status_code == 302
    library = Script.objects.get()
    create_script(acme, name="shop", source='local p = require("prices")', author=NOBODY)
    text = text_of(as_bob.get(page_of(library)))
    assert library.is_library
    assert 'id="try-it"' not in text
    assert 'aria-label="Hooks"' not in text
    assert text.partition("Required by")[2].count("shop") >= 1
