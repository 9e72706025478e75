"""Who may import whom, read from the sources: the layout's own rules, one test each."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The first entry that a module starts with says what of the project it may import.
MAY_IMPORT = {
    "core": {"core"},
    "accounts": {"accounts", "core"},
    "sessions_api": {"sessions_api", "accounts", "core"},
    "scripts_engine.sandbox": {"scripts_engine.sandbox"},
    "scripts_engine": {"scripts_engine", "accounts", "core"},
    "jobs": {"jobs", "scripts_engine", "accounts", "core"},
    "hooks.senders": {"hooks.senders"},
    "hooks": {"hooks", "jobs", "scripts_engine", "accounts", "core"},
    "config": {"config", "hooks", "jobs", "sessions_api", "scripts_engine", "accounts", "core"},
}
APPS = ("core", "accounts", "sessions_api", "scripts_engine", "jobs", "hooks", "config")
OURS = (*APPS, "tests")

SANDBOX = "scripts_engine.sandbox"
SENDERS = "hooks.senders"
LIBRARIES = (SANDBOX, SENDERS)
# The two sides of the sandbox know each other by the contract above them alone.
SIDES = (f"{SANDBOX}.parent", f"{SANDBOX}.child")

# Inside an app, from the outside in: a layer imports only what stands behind it.
EDGES = {"urls", "views", "wsgi", "edge", "graphql", "admin", "management", "authentication"}

WHAT_A_WORKER_LOADS = """
import sys
from scripts_engine.sandbox import *
from hooks.senders import *
sys.stdout.write(" ".join(sys.modules))
"""
WHAT_A_CHILD_LOADS = """
import sys
from scripts_engine.sandbox.child import fork_server
sys.stdout.write(" ".join(sys.modules))
"""


@cache
def modules() -> dict[str, ast.Module]:
    """The tree of every module of the product, by name."""
    paths = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            path.read_text()
        )
        for path in paths
    }


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports, each name with its module."""
    return {module: set(imported(tree, module)) for module, tree in modules().items()}


def imported(tree: ast.Module, module: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def apps_in_strings(tree: ast.Module) -> set[str]:
    """Our apps that a model's "app.Model" or a migration's ("app", "0001_initial") names."""
    named = set()
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if re.fullmatch(r"\w+\.\w+", text):
                named.add(text.split(".")[0])
            case ast.Tuple(elts=[ast.Constant(value=str(app)), ast.Constant(value=str())]):
                named.add(app)
    return named & set(APPS)


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def may_import(module: str, name: str) -> bool:
    place = next(prefix for prefix in MAY_IMPORT if is_within(module, prefix))
    return any(is_within(name, allowed) for allowed in MAY_IMPORT[place])


def is_ours(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] in OURS


def importers_of(package: str) -> set[str]:
    return {
        module
        for module, names in imports().items()
        if any(is_within(name, package) for name in names)
    }


def room_of(name: str) -> str | None:
    """The package inside an app that a name stands in, if it stands in one."""
    parts = name.split(".")[:2]
    return ".".join(parts) if len(parts) > 1 and ROOT.joinpath(*parts).is_dir() else None


@cache
def passages() -> set[tuple[str, str]]:
    """Which packages inside an app import which others of the same app."""
    pairs = {
        (room_of(module), room_of(name)) for module, names in imports().items() for name in names
    }
    return {
        (here, there)
        for here, there in pairs
        if here and there and here != there and here.split(".")[0] == there.split(".")[0]
    }


def circles_of(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of the pairs that close a circle."""
    behind = defaultdict(set)
    for here, there in pairs:
        behind[here].add(there)

    def is_behind(start: str, sought: str) -> bool:
        seen, ahead = set(), [start]
        while ahead:
            room = ahead.pop()
            if room == sought:
                return True
            ahead += behind[room] - seen
            seen.add(room)
        return False

    return {(here, there) for here, there in pairs if is_behind(there, here)}


def loaded_by(source: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_sources_are_found() -> None:
    assert {
        "accounts.credentials",
        "hooks.edge.wsgi",
        "jobs.queue.claim",
        "scripts_engine.sandbox.parent.pool",
    } <= set(modules())


# --- Between apps --------------------------------------------------------------------------------


def test_a_module_imports_only_what_its_place_allows() -> None:
    upward = {
        (module, name)
        for module, names in imports().items()
        for name in names
        if is_ours(name) and not may_import(module, name)
    }

    assert upward == set()


def test_nobody_imports_the_roof() -> None:
    assert {m for m in importers_of("config") if not is_within(m, "config")} == set()


def test_models_and_migrations_name_no_higher_app() -> None:
    """Not by a string either, or the initial migrations would make a circle."""
    named = {
        (module, app)
        for module, tree in modules().items()
        if {"models", "migrations"} & set(module.split("."))
        for app in apps_in_strings(tree)
    }

    assert ("hooks.models.hook", "hooks") in named
    assert ("jobs", "scripts_engine") in {(module.split(".")[0], app) for module, app in named}
    assert {(module, app) for module, app in named if not may_import(module, app)} == set()


# --- The libraries -------------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_imported_by_its_face_alone(library: str) -> None:
    face = {f"{library}.{name}" for name in import_module(library).__all__}
    deeper = {
        (module, name)
        for module, names in imports().items()
        if not is_within(module, library)
        for name in names
        if is_within(name, library) and name not in face
    }

    assert deeper == set()


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_name_of_a_face_is_there(library: str) -> None:
    face = import_module(library)

    assert [name for name in face.__all__ if not hasattr(face, name)] == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_knows_no_django(library: str) -> None:
    assert {m for m in importers_of("django") if is_within(m, library)} == set()


def test_the_two_sides_of_the_sandbox_import_only_themselves_and_the_contract() -> None:
    crossings = {
        (importer, side)
        for side in SIDES
        for importer in importers_of(side)
        if any(is_within(importer, other) for other in SIDES) and not is_within(importer, side)
    }

    assert crossings == set()


def test_only_the_runtime_imports_lupa() -> None:
    assert importers_of("lupa") == {"scripts_engine.sandbox.child.runtime"}


def test_the_faces_load_neither_django_nor_lua() -> None:
    loaded = loaded_by(WHAT_A_WORKER_LOADS)

    assert {"scripts_engine.sandbox.parent.pool", "hooks.senders.verification"} <= loaded
    assert loaded & {"django", "lupa", "lupa.lua54"} == set()


def test_a_child_loads_nothing_of_its_parent() -> None:
    loaded = loaded_by(WHAT_A_CHILD_LOADS)

    assert {"scripts_engine.sandbox", "lupa.lua54"} <= loaded
    assert {
        module
        for module in loaded
        if is_within(module, f"{SANDBOX}.parent") or is_within(module, f"{SANDBOX}.attacks")
    } == set()


# --- Inside an app -------------------------------------------------------------------------------


def test_flows_and_models_know_no_edge() -> None:
    """An app's ``apps`` module knows all of it, because it registers what others must know."""
    edges = {
        (module, name)
        for module, names in imports().items()
        if not (EDGES | {"apps"}) & set(module.split(".")) and not is_within(module, "config")
        for name in names
        if is_ours(name) and not is_within(name, "core") and EDGES & set(name.split(".")[1:-1])
    }

    assert edges == set()


def test_models_know_no_flow() -> None:
    flows = {
        (module, name)
        for module, names in imports().items()
        if "models" in module.split(".")
        for name in names
        if ".flows." in name
    }

    assert flows == set()


def test_packages_inside_an_app_import_each_other_in_no_circle() -> None:
    assert circles_of(passages()) == set()


def test_only_the_graphql_rooms_and_the_schemas_import_graphene() -> None:
    importers = importers_of("graphene")
    assert {m for m in importers if ".graphql" not in m and not is_within(m, "config.api")} == set()


def test_only_core_metrics_imports_prometheus() -> None:
    importers = importers_of("prometheus_client")
    assert {m for m in importers if not is_within(m, "core.metrics")} == set()


def test_only_core_knows_how_waiting_is_done() -> None:
    inside = {
        importer
        for module in modules()
        if module.startswith("core.waiting.")
        for importer in importers_of(module)
    }
    assert "core.server.worker" in inside
    assert {m for m in inside if not is_within(m, "core")} == set()


def test_resolvers_reach_rows_only_through_the_scope() -> None:
    """The wall between tenants: no resolver goes to a manager, but where callers are themselves."""
    allowed = {"accounts.graphql.scope", "sessions_api.graphql.people"}
    reaches = {
        module
        for module, tree in modules().items()
        if ".graphql" in module
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"objects", "_default_manager"}
    }

    assert reaches - allowed == set()
