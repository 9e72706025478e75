"""The client imports nothing of the server."""

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "moonhook_cli"
LIBRARIES = {
    "click", "httpx", "keyring", "moonhook_cli", "platformdirs", "rich", "tomlkit", "watchfiles",
}  # fmt: skip


def imported() -> set[str]:
    """The first part of each imported name."""
    nodes = [
        node for file in PACKAGE.rglob("*.py") for node in ast.walk(ast.parse(file.read_text()))
    ]
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    others = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | others}


def test_only_named_libraries_are_imported() -> None:
    assert "click" in imported()
    assert imported() - LIBRARIES <= set(sys.stdlib_module_names)
