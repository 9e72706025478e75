"""moonhook.toml: names, hooks, schedules and settings, and what differs by environment."""

import hashlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError
from tomlkit.items import Table

from moonhook_cli.errors import CommandError
from moonhook_cli.folder import SETTINGS, FolderError, slug_of
from moonhook_cli.merging import conflict_line

SECTIONS = ("scripts", "libraries", "hooks", "schedules")
_TOP = {"profile", "organisation", "env", *SECTIONS}
_ENVIRONMENT = {"profile", "organisation", "enabled", *SECTIONS}
# Said by the place of an item, not by a key of its own.
_IMPLIED = {
    "scripts": {"source", "library"},
    "libraries": {"source", "library"},
    "hooks": {"script", "name"},
    "schedules": {"name"},
}

Item = dict[str, Any]
Manifest = dict[str, Any]


def digest_of(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def name_key(name: str) -> str:
    """Equal for names that the server takes for one."""
    return unicodedata.normalize("NFC", name).casefold()


def with_sources_only(manifest: Manifest, live: Manifest) -> Manifest:
    """The sources of a manifest with everything else as it is live, for drafts."""
    there = {name_key(item["name"]): item for item in live["scripts"]}
    scripts = []
    for item in manifest["scripts"]:
        names = (item["name"], item.get("was", item["name"]))
        kept = next((there[key] for key in map(name_key, names) if key in there), item)
        scripts.append({**kept, "source": item["source"]})
    return {"version": 1, "scripts": scripts, "hooks": [], "schedules": []}


@dataclass(frozen=True, slots=True)
class Target:
    """An environment: where it is and what differs there."""

    name: str | None
    profile: str | None = None
    organisation: str | None = None
    enabled: frozenset[str] | None = None
    """Paths such as `hooks/sum/orders`; what is not among them is disabled."""
    overrides: Mapping[str, Mapping[str, Item]] = field(default_factory=dict)


class Settings:
    """The parsed file. Comments and order survive changes."""

    def __init__(self, text: str) -> None:
        if line := conflict_line(text):
            raise FolderError(
                SETTINGS, f"line {line} is a conflict marker.", "Resolve the conflict first."
            )
        try:
            self._document = tomlkit.parse(text)
        except ParseError as error:
            raise FolderError(SETTINGS, f"{error}.", "Correct the line.") from None
        self._check()

    @property
    def text(self) -> str:
        return tomlkit.dumps(self._document)

    def environments(self) -> list[str]:
        return sorted(self._document.get("env", {}))

    def target(self, name: str | None) -> Target:
        """The environment of that name; without a name, the file's own."""
        values = self._document.unwrap()
        if name is None:
            return Target(None, values.get("profile"), values.get("organisation"))
        found = values.get("env", {}).get(name)
        if found is None:
            known = ", ".join(self.environments()) or "none"
            raise CommandError(
                f"{SETTINGS} has no [env.{name}].", f"Known environments: {known}.", "NO_ENV"
            )
        enabled = found.get("enabled")
        return Target(
            name,
            found.get("profile"),
            found.get("organisation"),
            None if enabled is None else frozenset(enabled),
            {section: found.get(section, {}) for section in SECTIONS},
        )

    def manifest(self, sources: Mapping[str, str], target: Target) -> Manifest:
        """What the target shall be. ``sources`` are texts by path."""
        items = self._items(target)
        for path in sources:
            section, slug = path.removesuffix(".lua").split("/", 1)
            items[section].setdefault(slug, {})
        names = self._names(items, sources)
        scripts = [
            {
                **item,
                "name": item.get("name", slug),
                "source": digest_of(sources[f"{section}/{slug}.lua"]),
                "library": section == "libraries",
            }
            for section in ("scripts", "libraries")
            for slug, item in items[section].items()
        ]
        hooks = []
        for key, item in items["hooks"].items():
            slug, _, name = key.partition("/")
            if slug not in names or not name:
                raise _unknown_script(f'hooks."{key}"', slug)
            hooks.append({**item, "script": names[slug], "name": name})
        schedules = []
        for name, item in items["schedules"].items():
            slug = str(item.get("script", ""))
            if slug not in names:
                raise _unknown_script(f'schedules."{name}"', slug)
            schedules.append({**item, "name": name, "script": names[slug]})
        return {"version": 1, "scripts": scripts, "hooks": hooks, "schedules": schedules}

    def names(self, sources: Mapping[str, str]) -> dict[str, str]:
        """The file of each script and library, by name."""
        values = self._document.unwrap()
        found = {}
        for path in sources:
            section, slug = path.removesuffix(".lua").split("/", 1)
            found[values.get(section, {}).get(slug, {}).get("name", slug)] = path
        return found

    def apply(
        self, before: Manifest | None, now: Manifest, sources: Mapping[str, str], target: Target
    ) -> dict[str, str]:
        """Takes over what changed on the server; returns the sources by path.

        ``before`` is the manifest of the last pull or push; ``sources`` are texts by digest.
        """
        slugs = self._slugs(now)
        written = {
            f"{slugs[name_key(item['name'])]}.lua": sources[item["source"]]
            for item in now["scripts"]
        }
        old = {} if before is None else self._keyed(before, self._slugs(before))
        new = self._keyed(now, slugs)
        listed = self._document.unwrap()
        for (section, key), item in new.items():
            # What the file does not have is written in full: the base of a push without --prune
            # has it on the server alone.
            former = old.get((section, key)) if key in listed.get(section, {}) else None
            # Looking up a table takes long in a file whose sections alternate.
            if former != item:
                self._update(section, key, former, item, target)
        for section, key in old.keys() - new.keys():
            self._remove(section, key)
        return written

    def _keyed(self, manifest: Manifest, slugs: Mapping[str, str]) -> dict[tuple[str, str], Item]:
        """The items as this file writes them, by section and key."""
        found: dict[tuple[str, str], Item] = {}
        for item in manifest["scripts"]:
            section, slug = slugs[name_key(item["name"])].split("/", 1)
            named = {} if item["name"] == slug else {"name": item["name"]}
            found[section, slug] = {k: v for k, v in item.items() if k != "name"} | named
        for item in manifest["hooks"]:
            slug = slugs[name_key(item["script"])].split("/", 1)[1]
            found["hooks", f"{slug}/{item['name']}"] = item
        for item in manifest["schedules"]:
            slug = slugs[name_key(item["script"])].split("/", 1)[1]
            found["schedules", item["name"]] = item | {"script": slug}
        return {
            (section, key): {
                name: value
                for name, value in item.items()
                if name not in _IMPLIED[section] and value is not None
            }
            for (section, key), item in found.items()
        }

    def _slugs(self, manifest: Manifest) -> dict[str, str]:
        """Section and slug of each script of the manifest, by name key."""
        known: dict[str, str] = {}
        taken: dict[str, None] = {}
        for section in ("scripts", "libraries"):
            for slug, item in self._document.unwrap().get(section, {}).items():
                known[name_key(item.get("name", slug))] = slug
                taken[slug] = None
        slugs = {}
        for item in manifest["scripts"]:
            key = name_key(item["name"])
            slug = known.get(key) or slug_of(item["name"], taken)
            taken[slug] = None
            slugs[key] = f"{'libraries' if item.get('library') else 'scripts'}/{slug}"
        return slugs

    def _update(
        self, section: str, key: str, before: Item | None, now: Item, target: Target
    ) -> None:
        table = self._table(section, key)
        override = self._override(section, key, target)
        shown = {**table.unwrap(), **(override.unwrap() if override is not None else {})}
        compared = shown if before is None else before
        for name in sorted(compared.keys() | now.keys(), key=[*now, *compared].index):
            if name == "was" or compared.get(name) == now.get(name):
                continue
            if name == "enabled" and target.enabled is not None:
                self._list_enabled(f"{section}/{key}", bool(now.get(name)), target)
                continue
            place = override if override is not None and name in override else table
            if name in now:
                place[name] = now[name]
            else:
                place.pop(name, None)

    def _list_enabled(self, path: str, enabled: bool, target: Target) -> None:
        listed = self._document["env"][target.name]["enabled"]
        if enabled and path not in listed:
            listed.append(path)
        elif not enabled and path in listed:
            listed.remove(path)

    def _table(self, section: str, key: str) -> Any:
        if section not in self._document:
            self._document[section] = tomlkit.table(is_super_table=True)
        tables: Any = self._document[section]
        if key not in tables:
            tables[key] = tomlkit.table()
        return tables[key]

    def _override(self, section: str, key: str, target: Target) -> Table | None:
        if target.name is None:
            return None
        found: Table | None = self._document["env"][target.name].get(section, {}).get(key)
        return found

    def _remove(self, section: str, key: str) -> None:
        places: list[Any] = [self._document, *self._document.get("env", {}).values()]
        for place in places:
            place.get(section, {}).pop(key, None)
            if (path := f"{section}/{key}") in place.get("enabled", []):
                place["enabled"].remove(path)

    def _items(self, target: Target) -> dict[str, dict[str, Item]]:
        """The effective values of each item, by section and key."""
        values = self._document.unwrap()
        items: dict[str, dict[str, Item]] = {}
        for section in SECTIONS:
            overrides = target.overrides.get(section, {})
            for key in overrides.keys() - values.get(section, {}).keys():
                raise FolderError(
                    SETTINGS,
                    f'[env.{target.name}.{section}."{key}"] has no [{section}."{key}"].',
                    "Add the section, or remove the override.",
                )
            items[section] = {
                key: {**item, **overrides.get(key, {})}
                for key, item in values.get(section, {}).items()
            }
        if target.enabled is not None:
            for section in SECTIONS:
                for key, item in items[section].items():
                    if section != "libraries":
                        item["enabled"] = f"{section}/{key}" in target.enabled
            known = {f"{section}/{key}" for section in SECTIONS for key in items[section]}
            for path in sorted(target.enabled - known):
                raise FolderError(
                    SETTINGS, f"[env.{target.name}] enables `{path}`, which is not there.",
                    "Write paths such as `scripts/sum` or `hooks/sum/orders`.",
                )  # fmt: skip
        return items

    @staticmethod
    def _names(
        items: Mapping[str, Mapping[str, Item]], sources: Mapping[str, str]
    ) -> dict[str, str]:
        """The name of each script by slug. Each needs its file."""
        names: dict[str, str] = {}
        for section in ("scripts", "libraries"):
            for slug, item in items[section].items():
                path = f"{section}/{slug}.lua"
                if ".." in slug or "/" in slug:
                    raise FolderError(path, "is outside the folder.", f"Correct {SETTINGS}.")
                if path not in sources:
                    raise FolderError(
                        path, "is not there.", f"Restore it, or remove its section in {SETTINGS}."
                    )
                names[slug] = item.get("name", slug)
        return names

    def _check(self) -> None:
        values = self._document.unwrap()
        _check_keys(values, _TOP, "")
        for section in SECTIONS:
            _check_tables(values.get(section, {}), section)
        _check_tables(values.get("env", {}), "env")
        for name, found in values.get("env", {}).items():
            _check_keys(found, _ENVIRONMENT, f"env.{name}.")
            for section in SECTIONS:
                _check_tables(found.get(section, {}), f"env.{name}.{section}")
            enabled = found.get("enabled", [])
            if not isinstance(enabled, list) or not all(isinstance(one, str) for one in enabled):
                raise FolderError(
                    SETTINGS, f"`env.{name}.enabled` is not a list of paths.",
                    "Write it as [\"scripts/sum\", \"hooks/sum/orders\"].",
                )  # fmt: skip


def _check_keys(values: Mapping[str, Any], known: set[str], path: str) -> None:
    for key in sorted(values.keys() - known):
        raise FolderError(
            SETTINGS, f"there is no key `{path}{key}`.", f"Known are {', '.join(sorted(known))}."
        )
    for key in ("profile", "organisation"):
        if not isinstance(values.get(key, ""), str):
            raise FolderError(SETTINGS, f"`{path}{key}` is not text.", "Put it in quotes.")


def _check_tables(tables: object, path: str) -> None:
    if not isinstance(tables, dict) or not all(isinstance(one, dict) for one in tables.values()):
        raise FolderError(
            SETTINGS, f"`{path}` is not a group of sections.", f"Write sections as [{path}.NAME]."
        )


def _unknown_script(path: str, slug: str) -> FolderError:
    return FolderError(
        SETTINGS,
        f"[{path}] names the script `{slug}`, which is not there.",
        'Write the slug of a file: `[hooks."sum/orders"]` for scripts/sum.lua.',
    )
