"""Every way in tells the flows who gives: what calls them without it would give everything."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("accounts", "sessions_api", "scripts_engine", "jobs", "hooks", "config")
GUARDED = {
    "issue_api_key",
    "update_api_key",
    "rotate_api_key",
    "add_member",
    "remove_member",
    "create_user",
    "update_user",
    "deactivate_user",
    "unlock_user",
    "change_role",
}


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node


def edges() -> Iterator[Path]:
    for app in APPS:
        for path in (ROOT / app).rglob("*.py"):
            if {"admin", "graphql"} & set(path.relative_to(ROOT).parts):
                yield path
    yield from (ROOT / "accounts/flows").glob("*.py")


@pytest.mark.parametrize("path", list(edges()), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_maker_is_told(path: Path) -> None:
    silent = [
        f"{name} in line {node.lineno}"
        for name, node in calls(path)
        if name in GUARDED and "maker" not in {keyword.arg for keyword in node.keywords}
    ]

    assert silent == []


def test_the_walk_finds_calls() -> None:
    found = {name for path in edges() for name, _ in calls(path) if name in GUARDED}

    assert found == GUARDED
