"""Finds scripts, hooks and releases by what a person types: a name, `SCRIPT/HOOK` or an id."""

import re
from typing import Any

from moonhook_cli.errors import CommandError
from moonhook_cli.server import Server
from moonhook_cli.settings import name_key

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SCRIPTS = """query Scripts($name: String!, $after: String) {
  scripts(first: 100, name: $name, after: $after) {
    nodes { id name isLibrary }
    pageInfo { hasNextPage endCursor }
  }
}"""
HOOK = "id name enabled sender replyMode url secureUrl script { name }"
_HOOKS = f"""query Hooks($after: String) {{
  hooks(first: 100, after: $after) {{
    nodes {{ {HOOK} }}
    pageInfo {{ hasNextPage endCursor }}
  }}
}}"""
_RELEASES = """query Releases($after: String) {
  releases(first: 100, after: $after) {
    nodes { id number at by note changes { kind name action } }
    pageInfo { hasNextPage endCursor }
  }
}"""


def is_id(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def all_nodes(server: Server, query: str, field: str, **variables: object) -> list[dict[str, Any]]:
    """The objects of all pages."""
    nodes: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        page = server.graphql(query, after=after, **variables)[field]
        nodes += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            return nodes
        after = page["pageInfo"]["endCursor"]


def find_script(server: Server, name: str) -> dict[str, Any] | None:
    for script in all_nodes(server, _SCRIPTS, "scripts", name=name):
        if name_key(script["name"]) == name_key(name):
            return script
    return None


def all_hooks(server: Server) -> list[dict[str, Any]]:
    return all_nodes(server, _HOOKS, "hooks")


def find_hook(server: Server, text: str) -> dict[str, Any]:
    """Raises ``CommandError`` where none or several hooks are meant."""
    hooks = all_hooks(server)
    wanted = name_key(text)
    found = [
        hook
        for hook in hooks
        if hook["id"] == text.lower()
        or name_key(f"{hook['script']['name']}/{hook['name']}") == wanted
    ] or [hook for hook in hooks if name_key(hook["name"]) == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"{hook['script']['name']}/{hook['name']}" for hook in found)
        raise CommandError(f"Several hooks have this name: {listed}.", "Write SCRIPT/HOOK.")
    raise CommandError(
        f"There is no hook “{text}”.", "See the names: moonhook hooks list", "NOT_FOUND"
    )


def all_releases(server: Server, first: int | None = None) -> list[dict[str, Any]]:
    """Newest first."""
    if first is not None:
        query = _RELEASES.replace("first: 100", f"first: {first}")
        nodes: list[dict[str, Any]] = server.graphql(query)["releases"]["nodes"]
        return nodes
    return all_nodes(server, _RELEASES, "releases")


def find_release(server: Server, text: str) -> dict[str, Any]:
    for release in all_releases(server):
        if text in {release["id"], str(release["number"])}:
            return release
    raise CommandError(
        f"There is no release {text}.", "See the numbers: moonhook releases", "NOT_FOUND"
    )
