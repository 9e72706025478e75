"""An organisation's manifest and sources on the server, and plans to change them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moonhook_cli.errors import CommandError, NotAllowedError
from moonhook_cli.progress import progress
from moonhook_cli.server import Server
from moonhook_cli.settings import Manifest, digest_of

_MANIFEST = """{
  manifest
  organisation { id name }
  releases(first: 1) { nodes { id number at by note } }
}"""
_SOURCES = """query Sources($after: String) {
  scripts(first: 100, after: $after) {
    nodes { live { source } }
    pageInfo { hasNextPage endCursor }
  }
}"""
_MISSING = "query Missing($digests: [String!]!) { missingBlobs(digests: $digests) }"
_PLAN = """mutation Plan($manifest: JSON!, $prune: Boolean!) {
  planManifest(manifest: $manifest, prune: $prune) {
    id
    changes { kind name action diff }
    problems { path code message }
    secretsMissing
  }
}"""
_APPLY = """mutation Apply($id: ID!, $note: String!, $publish: Boolean!) {
  applyPlan(id: $id, note: $note, publish: $publish) {
    release { id number }%s
  }
}"""
_ISSUED_HOOKS = "\n    issuedHooks { hook { id name url secureUrl script { name } } callToken }"
_KEEP = "mutation Keep($sources: [String!]!) { keepBlobs(sources: $sources) }"
_SOURCES_AT_ONCE = 1_000
# A request takes 1 MiB.
_UPLOAD_BYTES = 900_000


@dataclass(frozen=True, slots=True)
class Remote:
    """What is live, and the newest release; ``None`` before the first one."""

    organisation_id: str
    organisation: str
    manifest: Manifest
    release: dict[str, Any] | None


def read_remote(server: Server) -> Remote:
    data = server.graphql(_MANIFEST)
    newest = data["releases"]["nodes"]
    return Remote(
        data["organisation"]["id"],
        data["organisation"]["name"],
        data["manifest"],
        newest[0] if newest else None,
    )


def read_sources(server: Server, manifest: Manifest) -> dict[str, str]:
    """The sources of the manifest's scripts, by digest."""
    found: dict[str, str] = {}
    after: str | None = None
    while True:
        page = server.graphql(_SOURCES, after=after)["scripts"]
        for script in page["nodes"]:
            if script["live"]:
                found[digest_of(script["live"]["source"])] = script["live"]["source"]
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = page["pageInfo"]["endCursor"]
    if any(item["source"] not in found for item in manifest["scripts"]):
        raise CommandError(
            "A release went live while the sources were read.", "Run the command again.", "CONFLICT"
        )
    return found


def missing_blobs(server: Server, digests: Iterable[str]) -> list[str]:
    listed = sorted(set(digests))
    return [
        digest
        for start in range(0, len(listed), _SOURCES_AT_ONCE)
        for digest in server.graphql(_MISSING, digests=listed[start : start + _SOURCES_AT_ONCE])[
            "missingBlobs"
        ]
    ]


def _upload(server: Server, sources: Iterable[str]) -> None:
    batches = list(_batches(sources))
    with progress("Uploading", len(batches)) as advance:
        for batch in batches:
            server.graphql(_KEEP, sources=batch)
            advance()


def _batches(sources: Iterable[str]) -> Iterator[list[str]]:
    """The sources, so many at a time as one request takes."""
    batch: list[str] = []
    size = 0
    for source in sources:
        # As it is sent, with its line breaks and quotation marks escaped.
        bytes_sent = len(json.dumps(source, ensure_ascii=False).encode()) + 1
        if batch and (size + bytes_sent > _UPLOAD_BYTES or len(batch) == _SOURCES_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += bytes_sent
    if batch:
        yield batch


def make_plan(
    server: Server, manifest: Manifest, sources: Mapping[str, str], *, prune: bool
) -> dict[str, Any]:
    """The server's plan. Uploads the sources, by digest, that it does not have."""
    missing = missing_blobs(server, sources)
    _upload(server, (sources[digest] for digest in missing))
    plan: dict[str, Any] = server.graphql(_PLAN, manifest=manifest, prune=prune)["planManifest"]
    plan["changes"] = [change for change in plan["changes"] if change["action"] != "None"]
    return plan


def apply_plan(server: Server, plan: dict[str, Any], *, note: str, publish: bool) -> dict[str, Any]:
    """What came of it. Call tokens are asked for only if there are new hooks.

    They need a scope of their own, which a key that pushes scripts may lack.
    """
    has_new_hooks = any(
        (change["kind"], change["action"]) == ("Hook", "Create") for change in plan["changes"]
    )
    document = _APPLY % (_ISSUED_HOOKS if has_new_hooks else "")
    applied = server.graphql(document, id=plan["id"], note=note, publish=publish)["applyPlan"]
    return {"issuedHooks": [], **applied}


def check_organisation(remote: Remote, expected: str | None) -> None:
    if expected is not None and remote.organisation != expected:
        raise NotAllowedError(
            f"This key belongs to {remote.organisation}, not to {expected}.",
            "Log in with a key of that organisation, or choose another --profile.",
        )
