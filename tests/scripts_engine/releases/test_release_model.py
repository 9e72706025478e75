"""Whatever is saved, published, pinned, deleted and undone: releases do what their model does."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accounts.models import Organisation, User
from accounts.scopes import EVERYTHING
from core.errors import ConflictError, NotFoundError
from core.http.origin import NOWHERE
from hooks.flows.find_callable_hook import find_callable_hook
from hooks.flows.hooks import IssuedHook, delete_hook, issue_hook, pin_hook, update_hook
from hooks.models import Hook
from scripts_engine.definition_quota import ROW_BYTES
from scripts_engine.flows.drafts import delete_draft, draft_owner, publish, save_draft
from scripts_engine.flows.scripts import create_script, delete_script, update_script
from scripts_engine.models import Release, RunStorage, Script, ScriptVersion, Trigger
from scripts_engine.releases.undo import undo_release
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import Author
from tests.factories import NOBODY, event_with, make_organisation, make_user, reply_of
from tests.scripts_engine.releases.release_model import HookState, Model, RefusedError, State
from tests.size import sized

PLACES = st.integers(0, 99)
NAMES = st.sampled_from(["sum", "SUM", "net", "gross"])
RESULTS = st.integers(0, 3)
REFUSALS = (ConflictError, NotFoundError, ValidationError)


class ReleaseMachine(RuleBasedStateMachine):
    """What may happen to the scripts of an organisation."""

    def __init__(self, authors: list[User]) -> None:
        super().__init__()
        self.organisation = make_organisation(f"Acme {Organisation.objects.count()}")
        self.authors = {draft_owner(Author(user=each)): Author(user=each) for each in authors}
        self.model = Model()
        self.scripts: dict[int, Script] = {}
        self.versions: dict[int, ScriptVersion] = {}
        self.hooks: dict[int, IssuedHook] = {}

    def both(self, of_model: Callable[[], Any], real: Callable[[], Any]) -> tuple[Any, Any] | None:
        """What both answer; ``None`` if both refuse."""
        expected: Any = None
        refusal: AbstractContextManager[Any] = nullcontext()
        try:
            expected = of_model()
        except RefusedError:
            refusal = pytest.raises(REFUSALS)
        with refusal:
            return expected, real()
        return None

    def script(self, place: int) -> int:
        return list(self.scripts)[place % len(self.scripts)]

    def version(self, place: int) -> int:
        kept = list(self.model.versions)
        return kept[place % len(kept)]

    def hook(self, place: int) -> int:
        return list(self.hooks)[place % len(self.hooks)]

    def author(self, place: int) -> str:
        return list(self.authors)[place % len(self.authors)]

    # --- Rules -----------------------------------------------------------------------------------

    @initialize()
    def begin_with_a_past_version_and_a_hook(self) -> None:
        self.create(name="sum", result=0)
        self.save(place=0, result=1)
        self.create_a_hook(place=0, name="net")

    @precondition(lambda self: len(self.scripts) < 5)
    @rule(name=NAMES, result=RESULTS)
    def create(self, name: str, result: int) -> None:
        source = f"return {result}"
        made = self.both(
            lambda: self.model.create(name, source),
            lambda: create_script(self.organisation, name=name, source=source, author=NOBODY),
        )
        if made is not None:
            (script, version), row = made
            self.scripts[script] = row
            self.versions[version] = row.current_version

    @precondition(lambda self: self.scripts)
    @rule(place=PLACES, result=RESULTS)
    def save(self, place: int, result: int) -> None:
        script, source = self.script(place), f"return {result}"
        saved = self.both(
            lambda: self.model.save(script, source),
            lambda: update_script(self.scripts[script], source=source, author=NOBODY),
        )
        if saved is not None and saved[0] is not None:
            self.versions[saved[0]] = saved[1].current_version

    @precondition(lambda self: self.scripts)
    @rule(place=PLACES, name=NAMES)
    def rename(self, place: int, name: str) -> None:
        script = self.script(place)
        self.both(
            lambda: self.model.change(script, name=name),
            lambda: update_script(self.scripts[script], name=name, author=NOBODY),
        )

    @precondition(lambda self: self.scripts)
    @rule(place=PLACES, is_enabled=st.booleans())
    def switch(self, place: int, is_enabled: bool) -> None:
        script = self.script(place)
        self.both(
            lambda: self.model.change(script, is_enabled=is_enabled),
            lambda: update_script(self.scripts[script], is_enabled=is_enabled, author=NOBODY),
        )

    @precondition(lambda self: self.scripts)
    @rule(place=PLACES)
    def delete(self, place: int) -> None:
        script = self.script(place)
        self.model.delete(script)
        delete_script(self.scripts[script])

    @precondition(lambda self: self.scripts)
    @rule(place=PLACES, author_place=PLACES, result=RESULTS, sees_live=st.booleans())
    def save_a_draft(self, place: int, author_place: int, result: int, sees_live: bool) -> None:
        script, author, source = self.script(place), self.author(author_place), f"return {result}"
        row = Script.objects.get(pk=self.scripts[script].pk)
        seen = {"expected_revision": row.revision} if sees_live else {}
        saved = self.both(
            lambda: self.model.save_draft(script, author, source, sees_live=sees_live),
            lambda: save_draft(row, source, author=self.authors[author], **seen),
        )
        if saved is not None:
            self.versions[saved[0]] = saved[1]

    @precondition(lambda self: self.model.versions)
    @rule(place=PLACES)
    def delete_a_draft(self, place: int) -> None:
        version = self.version(place)
        self.both(
            lambda: self.model.delete_draft(version),
            lambda: delete_draft(self.versions[version]),
        )

    @precondition(lambda self: self.model.versions)
    @rule(places=st.lists(PLACES, min_size=1, max_size=3, unique=True))
    def publish(self, places: list[int]) -> None:
        versions = list({self.version(place) for place in places})
        self.both(
            lambda: self.model.publish(versions),
            lambda: publish(self.organisation, [self.versions[each] for each in versions]),
        )

    @precondition(lambda self: self.model.versions)
    @rule(place=PLACES)
    def run(self, place: int) -> None:
        version = self.version(place)
        script = self.scripts[self.model.versions[version].script]
        run = try_script(
            script,
            event=event_with(),
            author=NOBODY,
            trigger=Trigger.ADMIN_GRAPHQL,
            version=self.versions[version],
        )
        assert f"return {reply_of(run)}" == self.model.run(version)

    @precondition(lambda self: self.scripts and len(self.hooks) < 4)
    @rule(place=PLACES, name=NAMES)
    def create_a_hook(self, place: int, name: str) -> None:
        script = self.script(place)
        made = self.both(
            lambda: self.model.create_hook(script, name),
            lambda: issue_hook(self.scripts[script], name=name),
        )
        if made is not None:
            self.hooks[made[0]] = made[1]

    @precondition(lambda self: self.hooks)
    @rule(place=PLACES, name=NAMES, is_enabled=st.booleans())
    def change_a_hook(self, place: int, name: str, is_enabled: bool) -> None:
        hook = self.hook(place)
        self.both(
            lambda: self.model.change_hook(hook, name=name, is_enabled=is_enabled),
            lambda: update_hook(self.hooks[hook].hook, name=name, is_enabled=is_enabled),
        )

    @precondition(lambda self: self.hooks)
    @rule(place=PLACES, version_place=PLACES, is_any=st.booleans())
    def pin(self, place: int, version_place: int, is_any: bool) -> None:
        hook = self.hook(place)
        versions = [*self.model.versions] if is_any else self.model.versions_of_hook(hook)
        version = versions[version_place % len(versions)]
        self.both(
            lambda: self.model.change_hook(hook, pin=version),
            lambda: pin_hook(self.hooks[hook].hook, self.versions[version]),
        )

    @precondition(lambda self: self.hooks)
    @rule(place=PLACES)
    def unpin(self, place: int) -> None:
        hook = self.hook(place)
        self.both(
            lambda: self.model.change_hook(hook, pin=None),
            lambda: pin_hook(self.hooks[hook].hook, None),
        )

    @precondition(lambda self: self.hooks)
    @rule(place=PLACES)
    def delete_a_hook(self, place: int) -> None:
        hook = self.hook(place)
        self.model.delete_hook(hook)
        delete_hook(self.hooks[hook].hook)

    @precondition(lambda self: self.model.releases)
    @rule(place=PLACES, force=st.booleans())
    def undo(self, place: int, force: bool) -> None:
        place %= len(self.model.releases)
        release = Release.objects.get(organisation=self.organisation, number=place + 1)
        self.both(
            lambda: self.model.undo(place, force=force),
            lambda: undo_release(release, held=EVERYTHING, force=force, origin=NOWHERE),
        )

    # --- What holds at any time ------------------------------------------------------------------

    @invariant()
    def scripts_are_as_in_the_model(self) -> None:
        rows = Script.objects.existing().filter(organisation=self.organisation)
        found = {row.pk: (row.name, row.is_enabled, row.current_version_id) for row in rows}

        assert found == {
            self.scripts[script].pk: (state.name, state.is_enabled, self.versions[state.live].pk)
            for script, state in self.model.states.items()
            if isinstance(state, State)
        }

    @invariant()
    def hooks_are_as_in_the_model(self) -> None:
        rows = Hook.objects.existing().filter(script__organisation=self.organisation)
        found = {row.pk: (row.script_id, row.name, row.is_enabled) for row in rows}

        assert found == {
            self.hooks[hook].hook.pk: (self.scripts[state.script].pk, state.name, state.is_enabled)
            for hook, state in self.model.states.items()
            if isinstance(state, HookState)
        }

    @invariant()
    def calls_run_what_they_run_in_the_model(self) -> None:
        found, expected = {}, {}
        for key, (hook, call_token) in self.hooks.items():
            version = self.model.called(key)
            expected[key] = None if version is None else self.versions[version].pk
            called = find_callable_hook(self.organisation.pk, hook.script_id, call_token)
            found[key] = None if called is None else called.version_id

        assert found == expected

    @invariant()
    def versions_are_as_in_the_model(self) -> None:
        rows = ScriptVersion.objects.filter(script__organisation=self.organisation)
        found = {
            row.pk: (
                row.script_id,
                row.number,
                row.source,
                row.draft_of,
                row.published_at is not None,
            )
            for row in rows
        }

        assert found == {
            self.versions[key].pk: (
                self.scripts[each.script].pk,
                each.number,
                each.source,
                each.draft_of,
                each.is_published,
            )
            for key, each in self.model.versions.items()
        }

    @invariant()
    def releases_are_as_in_the_model(self) -> None:
        rows = Release.objects.filter(organisation=self.organisation).order_by("number")
        found = [{row.object_id for row in release.changes.all()} for release in rows]

        ids = {key: row.pk for key, row in self.scripts.items()}
        ids |= {key: issued.hook.pk for key, issued in self.hooks.items()}
        assert found == [{ids[key] for key in changes} for changes in self.model.releases]

    @invariant()
    def what_is_stored_is_counted(self) -> None:
        sources = [each.source for each in self.model.versions.values()]
        releases = Release.objects.filter(organisation=self.organisation)
        size = sum(ROW_BYTES + len(source) for source in sources) + ROW_BYTES * len(self.hooks)
        size += sum(releases.values_list("bytes", flat=True))
        storage = RunStorage.objects.filter(pk=self.organisation.pk)

        assert size == sum(storage.values_list("definition_bytes", flat=True))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "examples", [10, pytest.param(sized(small=20, full=200), marks=pytest.mark.slow)]
)
def test_releases_do_what_their_model_does(settings: Any, examples: int) -> None:
    settings.SCRIPT_SAVES_PER_MINUTE = 10_000
    organisation = make_organisation("Authors")
    authors = [make_user(organisation, f"{name}@example.com") for name in ("bob", "dora")]
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        lambda: ReleaseMachine(authors),
        settings=hypothesis_settings(max_examples=examples, stateful_step_count=30, deadline=None),
    )
