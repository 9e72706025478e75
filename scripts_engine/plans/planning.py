"""Plans: what a manifest would change, and what is wrong with it. Planning changes nothing else."""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Organisation
from core.database.batches import delete_in_batches
from core.names import name_key
from scripts_engine.models import Action, Plan, ScriptVersion
from scripts_engine.plans.blobs import known_digests, use_blobs
from scripts_engine.plans.manifest import (
    MAX_ITEMS,
    WAS,
    Item,
    Problems,
    known_objects,
    parse_manifest,
)
from scripts_engine.plans.sources import NewSource, check_sources
from scripts_engine.releases.items import Field, ProblemCode, Refers
from scripts_engine.releases.kinds import (
    Kind,
    Place,
    State,
    action_of,
    digest_of,
    kinds,
    place_of,
)
from scripts_engine.runs.spec import Author, draft_owner

# Of a person or key.
MAX_LIVING = 5
# Of an organisation, applied ones included. Each may have as many bytes as a manifest.
MAX_KEPT = 100
LIFETIME = timedelta(hours=1)


@dataclass(slots=True)
class PlannedChange:
    """A change of a plan, as its row keeps it."""

    kind: str
    id: str
    name: str
    action: str
    seen: str
    """The digest of the state before."""
    after: State | None
    source: str | None = None
    """The SHA-256 of the source of the version ``after`` names, if that is to be made."""
    libraries: dict[str, str] = field(default_factory=dict)
    """The versions to which that source's ``require`` resolves, by name."""


def plan_manifest(
    organisation: Organisation,
    document: object,
    *,
    author: Author,
    prune: bool = False,
    kept: Collection[str] = (),
) -> Plan:
    """Keeps a plan of what the manifest, any JSON, would change in the organisation.

    With ``prune``, what the manifest does not name is deleted. Objects keep the values of the
    fields in ``kept`` that their items leave out. Beyond five plans of the author that wait, and
    five that were applied, the author's oldest goes; beyond ``MAX_KEPT``, the organisation's.
    """
    problems = Problems()
    items = parse_manifest(document, problems)
    changes: list[PlannedChange] = []
    secrets: Sequence[str] = ()
    if not problems.found:
        planner = _Planner(organisation, items, problems, frozenset(kept))
        changes = planner.changes(prune=prune)
    if not problems.found:
        secrets = planner.check_sources(changes)
    return _keep(organisation, author, [] if problems.found else changes, problems, secrets)


@transaction.atomic
def _keep(
    organisation: Organisation,
    author: Author,
    changes: Sequence[PlannedChange],
    problems: Problems,
    secrets: Sequence[str],
) -> Plan:
    # Locked, so that no more plans wait than may.
    Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
    use_blobs(organisation, {change.source for change in changes if change.source})
    every = Plan.objects.of_organisation(organisation)
    # Nobody ends the plans of others, unless there are very many.
    own = every.filter(made_by=draft_owner(author))
    # Of the applied ones, too, or planning and applying in turn would fill the disk.
    applied = own.filter(applied_at__isnull=False)
    oldest = [*_beyond(MAX_LIVING - 1, own.living()), *_beyond(MAX_LIVING, applied)]
    Plan.objects.filter(pk__in=oldest).delete()
    Plan.objects.filter(pk__in=list(_beyond(MAX_KEPT - 1, every))).delete()
    return Plan.objects.create(
        organisation=organisation,
        expires_at=timezone.now() + LIFETIME,
        changes=[asdict(change) for change in changes],
        problems=[problem._asdict() for problem in problems.found],
        secrets_missing=list(secrets),
        made_by=draft_owner(author),
    )


def _beyond(newest: int, plans: QuerySet[Plan]) -> QuerySet[Plan, uuid.UUID]:
    """The ids of the plans without the newest."""
    return plans.order_by("-created_at", "pk").values_list("pk", flat=True)[newest:]


def forget_expired_plans() -> int:
    return delete_in_batches(Plan.objects.filter(expires_at__lte=timezone.now()))


def changes_of(plan: Plan) -> list[PlannedChange]:
    return [PlannedChange(**change) for change in plan.changes]


# --- What would change ----------------------------------------------------------------------------


class _Planner:
    """Turns the items of a manifest into changes; adds what is wrong to the problems."""

    def __init__(
        self,
        organisation: Organisation,
        items: Sequence[Item],
        problems: Problems,
        kept: frozenset[str],
    ) -> None:
        self._organisation, self._items, self._problems = organisation, items, problems
        self._kept = kept
        self._paths: dict[str, str] = {}
        """The path of each changed object's item, by id."""
        self._known = known_objects(organisation)
        self._scripts: dict[str, State] = {}
        """Those that there will be, by id."""
        self._ids: dict[str, str] = {}
        """Their ids by the key of the name."""
        self._unknown: set[str] = set()
        """Ids of those whose items have problems, so that their states are not known."""
        self._sources: dict[str, str] = {}
        """Digests of the sources of versions to be made, by version."""
        self._given = known_digests(organisation, self._values_of(Refers.SOURCE))
        self._versions = self._published(self._values_of(Refers.VERSION))

    def changes(self, *, prune: bool) -> list[PlannedChange]:
        found = [change for kind in kinds() for change in self._of_kind(kind, prune=prune)]
        if sum(change.action == Action.DELETE for change in found) > MAX_ITEMS:
            message = f"A plan deletes at most {MAX_ITEMS:,} objects."
            self._problems.add("", ProblemCode.TOO_MANY_ITEMS, message)
        return found

    def check_sources(self, changes: Sequence[PlannedChange]) -> Sequence[str]:
        """Checks new sources and sets what they require. Returns secrets that they miss."""
        new = {
            change.after["version"]: change
            for change in changes
            if change.source is not None and change.after is not None
        }
        sources = [
            NewSource(f"{self._paths[change.id]}.source", change.source or "", change.id, version)
            for version, change in new.items()
        ]
        checked = check_sources(self._organisation, sources, self._scripts, self._problems)
        for version, libraries in checked.libraries.items():
            new[version].libraries = dict(libraries)
        return checked.secrets_missing

    def _of_kind(self, kind: Kind, *, prune: bool) -> list[PlannedChange]:
        there = self._known.states[kind.name]
        places = {place_of(kind, state): object_id for object_id, state in there.items()}
        items = [item for item in self._items if item.kind is kind]
        found = [(item, self._object_of(item, places)) for item in items]
        claimed = {object_id for _, object_id in found if object_id is not None}
        unclaimed = self._known.are_in_manifests(kind).keys() - claimed if prune else set()
        if kind is kinds()[0]:
            self._know_scripts(there, unclaimed)
        changes: list[PlannedChange] = []
        for item, existing_id in found:
            object_id = existing_id or uuid.uuid4()
            before = None if existing_id is None else there[existing_id]
            state = self._state(item, before)
            if kind is kinds()[0]:
                self._name_script(str(object_id), item, before, state)
            if state is not None:
                changes += self._changes(item, object_id, before, state)
        return [*changes, *_deletions(kind, {each: there[each] for each in unclaimed})]

    def _know_scripts(self, there: Mapping[uuid.UUID, State], unclaimed: set[uuid.UUID]) -> None:
        """Scripts that the manifest leaves alone; those that it names follow one by one."""
        for object_id, state in there.items():
            if object_id not in unclaimed:
                self._scripts[str(object_id)] = state
                self._ids[name_key(state["name"])] = str(object_id)

    def _object_of(self, item: Item, places: Mapping[Place, uuid.UUID]) -> uuid.UUID | None:
        """The existing object that the item names, by its name or by ``was``."""
        within = tuple(
            self._ids.get(name_key(item.values[each])) for each in item.kind.unique_within
        )
        here = places.get((*within, name_key(item.name)))
        if item.was is None:
            return here
        there = places.get((*within, name_key(item.was)))
        if here is not None and there is not None and here != there:
            message = "There are both: one of this name, and one of the name it is to have."
            self._problems.add(f"{item.path}.{WAS}", ProblemCode.NAME_TAKEN, message)
        return there if here is None else here

    def _changes(
        self, item: Item, object_id: uuid.UUID, before: State | None, state: State
    ) -> Iterator[PlannedChange]:
        for name, message in item.kind.misfits(state):
            self._problems.add(f"{item.path}.{name}", ProblemCode.INVALID, message)
        action = action_of(before, state)
        if action is Action.NONE:
            return
        self._paths[str(object_id)] = item.path
        yield PlannedChange(
            kind=item.kind.name,
            id=str(object_id),
            name=state["name"],
            action=action.value,
            seen=digest_of(before),
            after=state,
            source=self._sources.get(state.get("version") or ""),
        )

    def _name_script(
        self, object_id: str, item: Item, before: State | None, state: State | None
    ) -> None:
        if before is not None:
            self._ids.pop(name_key(before["name"]), None)
        self._ids[name_key(item.name)] = object_id
        if state is None:
            self._unknown.add(object_id)
        else:
            self._scripts[object_id] = state

    def _state(self, item: Item, before: State | None) -> State | None:
        """``None`` if something that the item names does not fit; problems tell what."""
        state: State = {}
        has_all = True
        for each in item.kind.fields:
            if before is not None and each.name not in item.values and self._is_kept(each):
                state[each.of_state] = before[each.of_state]
                continue
            value = item.values.get(each.name, _MISSING)
            if value is _MISSING:
                value = each.default(item.values)
            if value is not None and each.refers_to is not None:
                value = self._id_of(item, each, value, state, before)
                has_all = has_all and value is not None
            if each.is_fixed and before is not None and before[each.of_state] != value:
                message = "This cannot change. Delete the object, and create another."
                self._problems.add(f"{item.path}.{each.name}", ProblemCode.FIXED, message)
            state[each.of_state] = value
        return state if has_all else None

    def _is_kept(self, each: Field) -> bool:
        return each.is_kept or each.name in self._kept

    def _id_of(
        self, item: Item, each: Field, value: str, state: State, before: State | None
    ) -> str | None:
        path = f"{item.path}.{each.name}"
        if each.refers_to is Refers.SCRIPT:
            return self._script_id(value, path)
        if each.refers_to is Refers.SOURCE:
            return self._own_version(value, path, before)
        script = state.get("script")
        return None if script is None else self._pinned_version(value, path, script)

    def _script_id(self, name: str, path: str) -> str | None:
        script_id = self._ids.get(name_key(name))
        if script_id is None:
            message = "Neither the manifest nor what is kept has such a script."
            self._problems.add(path, ProblemCode.UNKNOWN_SCRIPT, message)
        elif script_id in self._unknown:
            return None
        elif self._scripts[script_id]["library"]:
            message = "A library runs by “require” only."
            self._problems.add(path, ProblemCode.UNFIT_SCRIPT, message)
            return None
        return script_id

    def _own_version(self, digest: str, path: str, before: State | None) -> str | None:
        if before is not None and self._known.digests.get(before["version"]) == digest:
            version: str = before["version"]
            return version
        if digest not in self._given:
            message = "There is no source of this digest. Upload it first."
            self._problems.add(path, ProblemCode.UNKNOWN_SOURCE, message)
            return None
        version = str(uuid7())
        self._sources[version] = digest
        return version

    def _pinned_version(self, digest: str, path: str, script: str) -> str | None:
        live = self._scripts[script]["version"]
        if live is not None and digest in {self._sources.get(live), self._known.digests.get(live)}:
            return str(live)
        version = self._versions.get((script, digest))
        if version is None:
            message = "The script has no published version with a source of this digest."
            self._problems.add(path, ProblemCode.UNKNOWN_VERSION, message)
        return version

    def _values_of(self, refers_to: Refers) -> set[str]:
        return {
            item.values[each.name]
            for item in self._items
            for each in item.kind.fields
            if each.refers_to is refers_to and item.values.get(each.name) is not None
        }

    def _published(self, digests: set[str]) -> dict[tuple[str, str], str]:
        """The newest published version of each script and digest."""
        rows = ScriptVersion.objects.of_organisation(self._organisation)
        rows = rows.filter(source_digest__in=digests, draft_of="", published_at__isnull=False)
        columns = rows.order_by("number").values_list("script_id", "source_digest", "pk")
        return {(str(script), digest): str(pk) for script, digest, pk in columns}


_MISSING = object()


def _deletions(kind: Kind, states: Mapping[uuid.UUID, State]) -> Iterator[PlannedChange]:
    for object_id, state in sorted(states.items(), key=lambda each: name_key(each[1]["name"])):
        yield PlannedChange(
            kind=kind.name,
            id=str(object_id),
            name=state["name"],
            action=Action.DELETE.value,
            seen=digest_of(state),
            after=None,
        )
