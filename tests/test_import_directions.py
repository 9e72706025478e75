"""Who may import whom, read from the sources: the layout's own rules."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The first entry that a module starts with says what of the project it may import.
MAY_IMPORT = {
    "core": {"core"},
    "accounts": {"accounts", "core"},
    "sessions_api": {"sessions_api", "accounts", "core"},
    "scripts_engine.sandbox": {"scripts_engine.sandbox"},
    "scripts_engine.senders": {"scripts_engine.senders"},
    "scripts_engine": {"scripts_engine", "accounts", "core"},
    "hooks": {"hooks", "scripts_engine", "accounts", "core"},
    "config": {"config", "hooks", "sessions_api", "scripts_engine", "accounts", "core"},
}
OURS = ("core", "accounts", "sessions_api", "scripts_engine", "hooks", "config", "tests")

SANDBOX = "scripts_engine.sandbox"
# The two sides of the sandbox know each other by the contract above them alone.
SIDES = (f"{SANDBOX}.parent", f"{SANDBOX}.child")

# Inside an app, from the outside in: a layer imports only what stands behind it.
EDGES = ("views", "wsgi", "graphql", "admin", "management", "authentication")


def modules() -> Iterator[tuple[str, Path]]:
    for folder in OURS[:-1]:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__"), path


PATHS = dict(modules())
MODULES = list(PATHS)


@cache
def imports_of(module: str) -> set[str]:
    tree = ast.parse(PATHS[module].read_text())
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def importers_of(package: str) -> set[str]:
    return {
        module for module in MODULES if any(is_within(name, package) for name in imports_of(module))
    }


def test_the_sources_are_found() -> None:
    assert {"accounts.credentials", "hooks.views", "scripts_engine.sandbox.parent.pool"} <= set(
        MODULES
    )


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_place_allows(module: str) -> None:
    place = next(prefix for prefix in MAY_IMPORT if is_within(module, prefix))
    ours = {name for name in imports_of(module) if name.split(".")[0] in OURS}
    forbidden = {
        name for name in ours if not any(is_within(name, allowed) for allowed in MAY_IMPORT[place])
    }

    assert forbidden == set()


def test_nobody_imports_the_roof() -> None:
    assert {m for m in importers_of("config") if not is_within(m, "config")} == set()


def test_the_two_sides_of_the_sandbox_import_only_themselves_and_the_contract() -> None:
    crossings = {
        (importer, side)
        for side in SIDES
        for importer in importers_of(side)
        if is_within(importer, SANDBOX) and not is_within(importer, side)
    }

    assert crossings == set()


@pytest.mark.parametrize("module", [m for m in MODULES if ".flows" in m or ".models" in m])
def test_flows_and_models_know_no_edge(module: str) -> None:
    edges = {
        name
        for name in imports_of(module)
        if name.split(".")[0] in OURS and set(name.split(".")[1:-1]) & set(EDGES)
    }

    assert edges == set()


@pytest.mark.parametrize("module", [m for m in MODULES if ".models" in m])
def test_models_know_no_flow(module: str) -> None:
    assert {name for name in imports_of(module) if ".flows." in name} == set()


def test_only_the_graphql_rooms_and_the_schemas_import_graphene() -> None:
    importers = importers_of("graphene")
    assert {m for m in importers if ".graphql" not in m and not is_within(m, "config.api")} == set()


def test_only_the_runtime_imports_lupa() -> None:
    assert importers_of("lupa") == {"scripts_engine.sandbox.child.runtime"}


def test_the_sandbox_knows_no_django() -> None:
    assert {m for m in importers_of("django") if is_within(m, SANDBOX)} == set()


def test_the_verification_of_senders_knows_no_django() -> None:
    senders = "scripts_engine.senders"
    assert {m for m in importers_of("django") if is_within(m, senders)} == set()


def test_only_core_metrics_imports_prometheus() -> None:
    importers = importers_of("prometheus_client")
    assert {m for m in importers if not is_within(m, "core.metrics")} == set()


@pytest.mark.parametrize("module", [m for m in MODULES if ".graphql" in m])
def test_resolvers_reach_rows_only_through_the_scope(module: str) -> None:
    """The wall between tenants: no resolver goes to a manager, but where callers are themselves."""
    allowed = {"accounts.graphql.scope", "sessions_api.graphql.people"}
    reaches = [
        node.attr
        for node in ast.walk(ast.parse(PATHS[module].read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"objects", "_default_manager"}
    ]

    assert reaches == [] or module in allowed
