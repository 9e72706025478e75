"""Libraries of an organisation: resolved, pinned, and run by every way that runs a script."""

import json
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.models import Organisation, User
from hooks.models import Hook
from jobs.queue.enqueue import request_run
from scripts_engine.flows.drafts import publish, save_draft
from scripts_engine.flows.scripts import (
    create_script,
    delete_script,
    restore_script_version,
    update_script,
)
from scripts_engine.flows.source import SourceError
from scripts_engine.libraries import resolve
from scripts_engine.models import RequiredLibrary, Script, ScriptVersion, Trigger
from scripts_engine.programs import program_of
from scripts_engine.runs.execution import try_new_script, try_script
from scripts_engine.runs.spec import NOBODY, Author, SavedRun
from scripts_engine.sandbox import KIB, MAX_LIBRARIES
from tests.factories import callable_hook, event_with, make_script, reply_of

pytestmark = pytest.mark.django_db

MONEY = "local money = {}\nfunction money.double(n) return 2 * n end\nreturn money"
USING = 'local money = require("money")\nreturn money.double(21)'


def make_library(organisation: Organisation, name: str = "money", source: str = MONEY) -> Script:
    return make_script(organisation, source, name, is_library=True)


def run(script: Script, **how: Any) -> str:
    made = try_script(
        script, event=event_with(), author=NOBODY, trigger=Trigger.ADMIN_GRAPHQL, **how
    )
    return reply_of(made)


def pins_of(script: Script) -> dict[str, int]:
    rows = RequiredLibrary.objects.filter(version=Script.objects.get(pk=script.pk).current_version)
    return dict(rows.values_list("name", "library_version__number"))


@pytest.fixture
def money(acme: Organisation) -> Script:
    return make_library(acme)


@pytest.fixture
def using(acme: Organisation, money: Script) -> Script:
    return make_script(acme, USING, "using")


@pytest.fixture
def by_bob(bob: User) -> Author:
    return Author(user=bob)


# --- Runs ----------------------------------------------------------------------------------------


def test_a_script_runs_with_the_library_that_it_was_saved_with(
    money: Script, using: Script
) -> None:
    update_script(money, source=MONEY.replace("2 * n", "3 * n"), author=NOBODY)

    assert run(using) == "42"
    assert pins_of(using) == {"money": 1}


def test_saving_again_takes_the_new_version(money: Script, using: Script) -> None:
    update_script(money, source=MONEY.replace("2 * n", "3 * n"), author=NOBODY)
    updated = update_script(using, source=f"{USING} -- again", author=NOBODY)

    assert run(updated) == "63"
    assert pins_of(using) == {"money": 2}


def test_an_error_in_a_library_names_it_with_its_line(acme: Organisation) -> None:
    make_library(acme, "failing", "\n\nerror('boom')")
    script = make_script(acme, "\nlocal failing = require('failing')", "using")
    made = try_script(script, event=event_with(), author=NOBODY, trigger=Trigger.ADMIN)

    assert (made.error_message, made.error_line) == ("failing:3: boom", 2)


def test_libraries_require_libraries_in_the_versions_of_their_own(acme: Organisation) -> None:
    base = make_library(acme, "base", "return 'old'")
    make_library(acme, "middle", "return require('base')")
    update_script(base, source="return 'new'", author=NOBODY)
    script = make_script(acme, "return require('base') .. ' ' .. require('middle')", "using")

    assert run(script) == "new old"


def test_versions_of_one_library_in_one_run_are_told_apart_in_errors(acme: Organisation) -> None:
    base = make_library(acme, "base", "return function() error('old') end")
    make_library(acme, "middle", "return require('base')")
    update_script(base, source="return function() error('new') end", author=NOBODY)
    source = "require('base') local fail = require('middle') fail()"
    script = make_script(acme, source, "using")
    made = try_script(script, event=event_with(), author=NOBODY, trigger=Trigger.ADMIN)

    assert made.error_message == "base (version 1):1: old"


def test_a_renamed_library_is_known_to_versions_by_its_old_name(
    money: Script, using: Script
) -> None:
    update_script(money, name="currency", author=NOBODY)
    program_of.cache_clear()

    assert run(using) == "42"


def test_a_name_is_found_in_another_case_and_spelling(acme: Organisation) -> None:
    make_library(acme, "Caf\u00e9", "return 'open'")
    script = make_script(acme, "return require('CAFE\u0301') .. require('caf\u00e9')", "using")

    assert run(script) == "openopen"


def test_a_source_that_is_not_saved_requires_live_libraries(
    acme: Organisation, bob: User, money: Script, using: Script
) -> None:
    update_script(money, source=MONEY.replace("2 * n", "3 * n"), author=NOBODY)
    author = Author(user=bob)
    new = try_new_script(acme, event=event_with(), author=author, source=USING)

    assert run(using, source=f"{USING} -- changed") == "63"
    assert reply_of(new) == "63"


def test_a_source_that_requires_what_is_not_there_does_not_run(
    acme: Organisation, using: Script
) -> None:
    with pytest.raises(SourceError, match="There is no library “nothing”") as refused:
        run(using, source="\nreturn require('nothing')")
    assert refused.value.line == 2
    assert using.runs.count() == 0


def test_a_dynamic_name_fails_when_it_runs(acme: Organisation, money: Script) -> None:
    script = make_script(acme, "\nlocal name = 'mo' .. 'ney'\nlocal x = require(name)", "using")
    made = try_script(script, event=event_with(), author=NOBODY, trigger=Trigger.ADMIN)

    assert made.error_message.startswith('using:3: require: no library "money" here')


@pytest.mark.parametrize("runs", [0, 1], ids=["cold", "warm"])
def test_a_run_reads_its_program_once_by_two_statements(
    using: Script, runs: int, django_assert_num_queries: Any
) -> None:
    program_of.cache_clear()
    script = Script.objects.get(pk=using.pk)
    for _ in range(runs):
        SavedRun.of_script(script, trigger=Trigger.HOOK)
    with django_assert_num_queries(0 if runs else 2):
        spec = SavedRun.of_script(script, trigger=Trigger.HOOK)

    assert spec.libraries.source_bytes == len(MONEY)


def test_a_library_is_not_run(acme: Organisation, money: Script) -> None:
    for attempt in (lambda: run(money), lambda: run(money, source="return 1")):
        with pytest.raises(ValidationError) as refused:
            attempt()
        assert set(refused.value.message_dict) == {"script"}
    with pytest.raises(ValidationError, match="does not run"):
        request_run(money, event=event_with(), author=NOBODY)
    assert money.runs.count() == 0


def test_a_library_is_not_pushed_into_the_queue(acme: Organisation, money: Script) -> None:
    script = make_script(acme, "return queue.push('money', 'x')", "pushing")
    made = try_script(script, event=event_with(), author=NOBODY, trigger=Trigger.ADMIN)

    assert "this is a library, which does not run" in made.error_message
    assert money.runs.count() == 0


# --- Resolution ----------------------------------------------------------------------------------


def refusal(organisation: Organisation, source: str, **how: Any) -> tuple[str, int | None]:
    with pytest.raises(SourceError) as refused:
        resolve(organisation, source, **how)
    return refused.value.message, refused.value.line


def test_an_unknown_library_and_a_foreign_one_are_refused_alike(
    acme: Organisation, globex: Organisation
) -> None:
    make_library(globex, "foreign")

    assert refusal(acme, '\nrequire("foreign")') == (
        "script:2: There is no library “foreign”.",
        2,
    )
    assert refusal(acme, '\nrequire("unknown")') == (
        "script:2: There is no library “unknown”.",
        2,
    )


def test_a_deleted_library_is_unknown(acme: Organisation, money: Script) -> None:
    delete_script(money)

    assert refusal(acme, USING)[0] == "script:1: There is no library “money”."


def test_a_disabled_library_is_refused_and_versions_that_require_it_go_on(
    acme: Organisation, money: Script, using: Script
) -> None:
    update_script(money, is_enabled=False, author=NOBODY)

    assert refusal(acme, USING) == ("script:1: The library “money” is disabled.", 1)
    assert run(using) == "42"


def test_a_script_is_not_a_library(acme: Organisation) -> None:
    make_script(acme, name="money")

    assert refusal(acme, USING)[0] == "script:1: “money” is a script and not a library."


@pytest.mark.parametrize(
    "name", ["\\0", "a\\0b", "x" * 101, "", "\\xff", "../money", " money", "money\\n"]
)
def test_a_name_that_no_library_can_have_is_refused(
    acme: Organisation, money: Script, name: str
) -> None:
    assert "There is no library" in refusal(acme, f'require("{name}")')[0]


def test_a_library_that_requires_itself_is_refused(acme: Organisation, money: Script) -> None:
    with pytest.raises(SourceError, match=r"money:1: The library “money” requires itself\."):
        update_script(money, source='return require("money")', author=NOBODY)
    assert money.versions.count() == 1


def test_a_cycle_through_other_libraries_is_refused(acme: Organisation, money: Script) -> None:
    make_library(acme, "cart", 'return require("money")')
    make_library(acme, "shop", 'return require("cart")')

    with pytest.raises(SourceError, match=r"money:2: The library “shop” requires this one"):
        update_script(money, source='\nreturn require("shop")', author=NOBODY)
    assert money.versions.count() == 1


def test_sources_over_the_limit_together_are_refused(acme: Organisation) -> None:
    for name in ("a", "b", "c", "d"):
        make_library(acme, name, "-" * (62 * KIB))
    source = 'require("a")\nrequire("b")\nrequire("c")\nrequire("d")\n'
    fits = source + "-" * (8 * KIB - len(source))

    assert set(resolve(acme, fits)) == {"a", "b", "c", "d"}
    assert refusal(acme, fits + "-") == (
        "script:4: With the library “d” the sources have 262,145 bytes, over 256 KiB.",
        4,
    )


def test_what_libraries_require_counts_once(acme: Organisation) -> None:
    make_library(acme, "base", "-" * (60 * KIB))
    for name in ("a", "b", "c"):
        make_library(acme, name, 'require("base")' + "-" * (60 * KIB))

    assert len(resolve(acme, 'require("a") require("b") require("c")')) == 3


def test_more_names_than_libraries_are_allowed_are_refused(acme: Organisation) -> None:
    for number in range(MAX_LIBRARIES + 1):
        make_library(acme, f"a{number}", "")
    lines = [f'require("a{number}")' for number in range(MAX_LIBRARIES + 1)]

    assert len(resolve(acme, "\n".join(lines[:-1]))) == MAX_LIBRARIES
    assert refusal(acme, "\n".join(lines)) == (
        "script:101: With the library “a100” there are more than 100 libraries.",
        101,
    )


def test_names_take_the_same_statements_however_many(
    acme: Organisation, django_assert_num_queries: Any
) -> None:
    names = [f"a{number}" for number in range(20)]
    for name in names:
        make_library(acme, name, "")
    with django_assert_num_queries(3):
        resolve(acme, " ".join(f'require("{name}")' for name in names))
    with django_assert_num_queries(0):
        resolve(acme, "return 1")


def test_a_refused_source_creates_nothing(acme: Organisation) -> None:
    with pytest.raises(SourceError):
        create_script(acme, name="using", source=USING, author=NOBODY)

    assert (Script.objects.count(), ScriptVersion.objects.count()) == (0, 0)


def test_a_restored_source_requires_the_live_libraries(money: Script, using: Script) -> None:
    update_script(using, source="return 1", author=NOBODY)
    update_script(money, source=MONEY.replace("2 * n", "3 * n"), author=NOBODY)
    restored = restore_script_version(using.versions.get(number=1), author=NOBODY)

    assert run(restored) == "63"


# --- Drafts --------------------------------------------------------------------------------------


def test_a_draft_requires_the_draft_of_a_library_that_was_never_live(
    acme: Organisation, by_bob: Author, script: Script
) -> None:
    library = Script.objects.create(organisation=acme, name="new", is_library=True)
    save_draft(library, "return 'draft'", author=by_bob)
    draft = save_draft(script, "return require('new')", author=by_bob)

    assert run(script, version=draft) == "draft"
    assert "has not been published" in refusal(acme, "require('new')")[0]


def test_a_draft_that_has_run_keeps_the_drafts_that_it_required(
    acme: Organisation, by_bob: Author, script: Script
) -> None:
    library = Script.objects.create(organisation=acme, name="new", is_library=True)
    first = save_draft(library, "return 'first'", author=by_bob)
    draft = save_draft(script, "return require('new')", author=by_bob)
    run(script, version=draft)
    second = save_draft(library, "return 'second'", author=by_bob)
    program_of.cache_clear()

    assert run(script, version=draft) == "first"
    assert second.pk != first.pk


def test_a_draft_saved_again_with_a_newer_library_requires_that(
    money: Script, using: Script, by_bob: Author
) -> None:
    save_draft(using, f"{USING} -- draft", author=by_bob)
    update_script(money, source=MONEY.replace("2 * n", "3 * n"), author=NOBODY)
    again = save_draft(using, f"{USING} -- draft", author=by_bob)

    assert using.versions.drafts().get() == again
    assert run(using, version=again) == "63"


def test_published_drafts_require_one_another(
    acme: Organisation, money: Script, using: Script, by_bob: Author
) -> None:
    drafts = [
        save_draft(using, f"{USING} -- draft", author=by_bob),
        save_draft(money, MONEY.replace("2 * n", "3 * n"), author=by_bob),
    ]
    publish(acme, drafts)

    assert pins_of(using) == {"money": 2}
    assert run(Script.objects.get(pk=using.pk)) == "63"


def test_a_draft_that_has_run_goes_live_as_another_version_with_a_newer_library(
    acme: Organisation, money: Script, using: Script, by_bob: Author
) -> None:
    draft = save_draft(using, f"{USING} -- draft", author=by_bob)
    run(using, version=draft)
    update_script(money, source=MONEY.replace("2 * n", "3 * n"), author=NOBODY)
    publish(acme, [draft])

    live = Script.objects.get(pk=using.pk)
    draft.refresh_from_db()
    assert live.current_version_id not in {draft.pk, using.current_version_id}
    assert (live.source, run(live)) == (draft.source, "63")
    assert (draft.draft_of, draft.published_at) == ("", None)
    assert run(live, version=draft) == "42"


def test_drafts_that_have_run_and_require_one_another_go_live_together(
    acme: Organisation, money: Script, using: Script, by_bob: Author
) -> None:
    base = make_library(acme, "base", "return 2")
    of_money = save_draft(money, "local base = require('base')\n" + MONEY, author=by_bob)
    of_using = save_draft(using, f"{USING} -- draft", author=by_bob)
    for draft in (of_money, of_using):
        ScriptVersion.objects.filter(pk=draft.pk).update(has_run=True)
    update_script(base, source="return 3", author=NOBODY)
    publish(acme, [of_using, of_money])

    live = ScriptVersion.objects.get(pk=Script.objects.get(pk=using.pk).current_version_id)
    required = live.requirements.get().library_version
    assert required.script_id == money.pk
    assert required.pk == Script.objects.get(pk=money.pk).current_version_id != of_money.pk
    assert required.requirements.get().library_version.source == "return 3"


def test_drafts_that_require_each_other_are_not_published(
    acme: Organisation, money: Script, by_bob: Author
) -> None:
    cart = make_library(acme, "cart", "return 1")
    drafts = [save_draft(cart, "return require('money')", author=by_bob)]
    drafts += [save_draft(money, "return require('cart')", author=by_bob)]
    before = Script.objects.values_list("pk", "current_version")
    known = set(before)

    with pytest.raises(SourceError, match="a cycle"):
        publish(acme, drafts)
    assert set(before.all()) == known


# --- Deletion ------------------------------------------------------------------------------------


def test_a_library_that_live_versions_require_is_not_deleted(money: Script, using: Script) -> None:
    with pytest.raises(ValidationError, match="while scripts require it: “using”"):
        delete_script(money)
    assert Script.objects.existing().filter(pk=money.pk).exists()


def test_a_library_that_only_past_versions_require_is_deleted_and_they_still_run(
    money: Script, using: Script
) -> None:
    update_script(using, source="return 1", author=NOBODY)
    delete_script(money)
    program_of.cache_clear()

    past = using.versions.get(number=1)
    assert run(Script.objects.get(pk=using.pk), version=past) == "42"


def test_a_call_of_a_hook_runs_with_libraries(
    acme: Organisation, money: Script, script: Script, hook: Hook
) -> None:
    update_script(script, source=USING, author=NOBODY)
    spec = callable_hook(Hook.objects.get(pk=hook.pk)).saved_run()

    assert [library.chunk_name for library in spec.libraries.by_key.values()] == ["money"]
    assert json.loads(run(Script.objects.get(pk=script.pk))) == 42
