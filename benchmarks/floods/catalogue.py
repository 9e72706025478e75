"""The floods: requests, connections and maximum rates."""

import itertools
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from benchmarks.comparison.order import ORDER
from benchmarks.floods.cast import CSRF_TOKEN, Cast, Request

MIB = 1024 * 1024
USER_GRAPHQL, ADMIN_GRAPHQL = "/user/graphql", "/admin/graphql"
Requests = Callable[[Cast, str], Iterator[Request]]
"""An endless stream, for a cast and the address of a server that answers slowly."""


@dataclass(frozen=True)
class Flood:
    """At most ``connections`` at once and ``per_second`` in total, however many the node can serve.

    A faster flood would win by taking the CPU time that the node needs.
    """

    what: str
    requests: Requests
    connections: int = 64
    per_second: int = 100


def hook_that_waits(cast: Cast, slow_url: str) -> Iterator[Request]:
    return itertools.repeat(_call(cast, "waits", slow_url.encode()))


def hook_that_loops(cast: Cast, slow_url: str) -> Iterator[Request]:
    return itertools.repeat(_call(cast, "loops"))


def hot_key(cast: Cast, slow_url: str) -> Iterator[Request]:
    return itertools.repeat(_call(cast, "counts"))


def logs(cast: Cast, slow_url: str) -> Iterator[Request]:
    return itertools.repeat(_call(cast, "logs"))


def graphql_counts(cast: Cast, slow_url: str) -> Iterator[Request]:
    aliases = (
        f'count{number}: runs(since: "{since}") {{ totalCount }}'
        for number, since in enumerate(cast.flooder.since)
    )
    return itertools.repeat(_admin_graphql(cast, f"{{ {' '.join(aliases)} }}"))


def admin_logins(cast: Cast, slow_url: str) -> Iterator[Request]:
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Cookie": f"moonhook_admin_csrf={CSRF_TOKEN}",
    }
    while True:
        form = {
            "csrfmiddlewaretoken": CSRF_TOKEN,
            "username": f"{uuid.uuid4().hex}@example.com",
            "password": "Summer2026!",
        }
        yield Request("POST", "/admin/login/", headers, urlencode(form).encode())


def pins(cast: Cast, slow_url: str) -> Iterator[Request]:
    send = "mutation($email: String!) { sendPinCode(email: $email, sendVia: Email) }"
    check = (
        "mutation($email: String!, $device: String!) "
        '{ checkPinCode(email: $email, pin: "123456", device: $device) { result } }'
    )
    while True:
        variables = {"email": f"{uuid.uuid4().hex}@example.com"}
        yield Request.posting_json(USER_GRAPHQL, {"query": send, "variables": variables})
        variables["device"] = str(uuid.uuid4())
        yield Request.posting_json(USER_GRAPHQL, {"query": check, "variables": variables})


def big_bodies(cast: Cast, slow_url: str) -> Iterator[Request]:
    document = {"query": "{ organisation { id } }", "variables": {"x": [0] * (ADMIN_BODY // 2)}}
    return itertools.cycle(
        [
            _call(cast, "takes", b"x" * MIB),
            Request.posting_json(ADMIN_GRAPHQL, document, **_bearer(cast)),
        ]
    )


# With the rest of the document a little below the 512 KiB that are read.
ADMIN_BODY = MIB // 2 - 200


def organisations_in_turn(cast: Cast, slow_url: str) -> Iterator[Request]:
    return itertools.cycle([Request("POST", path, {}) for path in cast.many_hooks])


def admin_lists(cast: Cast, slow_url: str) -> Iterator[Request]:
    headers = {"Cookie": cast.flooder.admin_cookie}
    return itertools.cycle([Request("GET", page, headers) for page in cast.flooder.admin_pages])


def refused_sessions(cast: Cast, slow_url: str) -> Iterator[Request]:
    login = {"credential": "ApiKey", "uid": cast.flooder.api_key, "email": None}
    return itertools.cycle(
        [
            Request.posting_json("/session", {**login, "password": secret})
            for secret in cast.flooder.wrong_secrets
        ]
    )


def _call(cast: Cast, script: str, body: bytes = b"") -> Request:
    return Request("POST", cast.flooder.hooks[script], {}, body or json.dumps(ORDER).encode())


def _admin_graphql(cast: Cast, query: str) -> Request:
    return Request.posting_json(ADMIN_GRAPHQL, {"query": query}, **_bearer(cast))


def _bearer(cast: Cast) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {cast.flooder.session}",
        # With this one failures have a status of their own.
        "Accept": "application/graphql-response+json",
    }


SLOW_CLIENTS = "slow-clients"
FLOODS = {
    "waiting-hook": Flood("a hook that waits for a slow server", hook_that_waits),
    "looping-hook": Flood("a hook in an endless loop", hook_that_loops),
    "graphql-counts": Flood("30 counts of runs in a document", graphql_counts, connections=40),
    "admin-logins": Flood("a password for ever-new names", admin_logins, connections=40),
    "pins": Flood("PIN sends and checks for ever-new addresses", pins, connections=40),
    "big-bodies": Flood(
        "1 MiB to a hook, 512 KiB to GraphQL", big_bodies, connections=16, per_second=40
    ),
    "organisations": Flood(
        "calls of 100 organisations in turn", organisations_in_turn, per_second=200
    ),
    "hot-key": Flood("store.increment of one key from all slots", hot_key, per_second=200),
    "logs": Flood("a hook that prints 64 KiB", logs),
    "admin-lists": Flood("lists and searches of runs in the admin", admin_lists, connections=40),
    "refused-sessions": Flood("logins with wrong secrets", refused_sessions, per_second=200),
}
DESCRIPTIONS = {name: flood.what for name, flood in FLOODS.items()} | {
    SLOW_CLIENTS: "60 clients that send or read a byte a second"
}
