"""listen: repeats the calls of a hook to a local address, and shows both replies."""

import hmac
import json
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import click
import httpx

from moonhook_cli import __version__
from moonhook_cli.context import Context, pass_context, until_interrupted
from moonhook_cli.following import Reconnecting
from moonhook_cli.look_ups import find_hook
from moonhook_cli.output import Output, short_time
from moonhook_cli.redaction import hide
from moonhook_cli.server import checked_url
from moonhook_cli.shown_runs import REQUEST_HEADERS, headers_of

_START = "mutation Start($hook: ID!) { startListening(hook: $hook) }"
_FEED = """query Feed($cursor: String, $filter: RunFilter) {
  runsSince(cursor: $cursor, first: 100, filter: $filter) {
    nodes { id attempt } cursor hasMore
  }
}"""
_CALL = f"""query Call($id: ID!) {{
  run(id: $id) {{
    id startedAt status durationMs responseStatus responseBodyBase64 requestMethod requestPath
    requestQuery requestBytes requestBodyBase64 {REQUEST_HEADERS}
  }}
}}"""
_TIMEOUT_SECONDS = 30
_SECRET_PREFIX, _SECRET_BYTES = "whsec_", 32
# Of a reply, for a person to recognise it.
_READ_BYTES = 64 * 1024
_SHOWN_CHARACTERS = 200


@click.command(short_help="Repeat the calls of a hook to a local address.")
@click.argument("hook")
@click.option(
    "--forward",
    "url",
    metavar="URL",
    required=True,
    help="Where to repeat the calls, such as http://127.0.0.1:3000/hook.",
)
@click.option(
    "--print-secret", is_flag=True, help="Print the secret that signs the repeated calls."
)
@pass_context
def listen(context: Context, hook: str, url: str, *, print_secret: bool) -> None:
    """Repeat each call of a hook to a local address, and show both replies.

    HOOK is SCRIPT/HOOK or an id. The script on the server has run and replied already; what the
    local program replies goes nowhere else. Repeated are method, path, query, body and the headers
    that are no credentials, once for each call, replays and test events included. Each one is
    signed by Standard Webhooks with a secret of this session (--print-secret). The start is
    recorded in the audit log. Ctrl-C ends it.
    """
    base = checked_url(
        url, what="an address to repeat calls to", sent="calls", example="http://127.0.0.1:3000"
    )
    with until_interrupted(context):
        _listen(context, hook, base, print_secret=print_secret)


def _listen(context: Context, hook: str, base: str, *, print_secret: bool) -> None:
    server, output = context.server, context.output
    found = find_hook(server, hook)
    cursor = server.graphql(_START, hook=found["id"])["startListening"]
    secret = _new_secret()
    hide(secret)
    if print_secret:
        if output.as_json:
            output.json({"signingSecret": secret})
        output.say(f"Signing secret of this session: {secret}")
    name = f"{found['script']['name']}/{found['name']}"
    output.note(f"Repeating the calls of {name} to {base}. Ctrl-C ends it.")
    following = Reconnecting(server, output.note)
    # Neither a proxy of the environment nor a redirect leads elsewhere.
    with httpx.Client(timeout=_TIMEOUT_SECONDS, trust_env=False, follow_redirects=False) as local:
        forwarding = _Forwarding(local, base, secret)
        for page, _ in following.pages(_FEED, cursor, filter={"hook": found["id"]}):
            for run in page:
                # Later attempts have the call of the first.
                if run["attempt"] == 1:
                    call = following.graphql(_CALL, id=run["id"])["run"]
                    _show(output, call, forwarding.forward(call))


@dataclass(frozen=True, slots=True)
class _Reply:
    """What the local program replied, or why there is no reply."""

    status: int | None = None
    body: bytes = b""
    duration_ms: float = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Forwarding:
    client: httpx.Client
    base: str
    secret: str

    def forward(self, call: Mapping[str, Any]) -> _Reply:
        body = b64decode(call["requestBodyBase64"])
        if not body and call["requestBytes"]:
            return _Reply(error="not repeated: the payload was removed")
        path = call["requestPath"]
        if {".", ".."} & set(path.split("/")):
            return _Reply(error="not repeated: its path leads elsewhere")
        query = f"?{call['requestQuery']}" if call["requestQuery"] else ""
        headers, _ = headers_of(call)
        try:
            request = self.client.build_request(
                call["requestMethod"],
                f"{self.base}{quote(path)}{query}",
                content=body,
                headers={
                    "user-agent": f"moonhook-cli/{__version__}",
                    **{name.lower(): value.encode("latin-1") for name, value in headers},
                    **_signed_headers(self.secret, call["id"], body),
                    "accept-encoding": "identity",
                    "moonhook-run-id": call["id"],
                },
            )
            return self._send(request)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            return _Reply(error=f"no reply: {error or type(error).__name__}")

    def _send(self, request: httpx.Request) -> _Reply:
        reply = self.client.send(request, stream=True)
        try:
            read = b""
            for chunk in reply.iter_raw():
                read += chunk
                if len(read) >= _READ_BYTES:
                    break
        finally:
            reply.close()
        duration_ms = reply.elapsed.total_seconds() * 1000
        return _Reply(reply.status_code, read[:_READ_BYTES], duration_ms)


def _show(output: Output, call: Mapping[str, Any], reply: _Reply) -> None:
    _, left_out = headers_of(call)
    theirs = b64decode(call["responseBodyBase64"])
    query = f"?{call['requestQuery']}" if call["requestQuery"] else ""
    if output.as_json:
        output.json(
            {
                "run": call["id"],
                "at": call["startedAt"],
                "method": call["requestMethod"],
                "path": call["requestPath"],
                "query": call["requestQuery"],
                "leftOut": left_out,
                "server": {"status": call["responseStatus"], "body": _text(theirs)},
                "local": {
                    "status": reply.status,
                    "body": _text(reply.body),
                    "error": reply.error or None,
                },
            }
        )
        return
    output.say(
        f"{short_time(call['startedAt'])}  {call['requestMethod']} {call['requestPath'] or '/'}"
        f"{query}  run {call['id']}"
    )
    output.say(_line("server", call["responseStatus"], call["durationMs"], theirs))
    if reply.status is None:
        output.say(f"  local   {reply.error}", "red")
    else:
        line = _line("local", reply.status, reply.duration_ms, reply.body)
        output.say(line, "" if reply.status < 400 else "red")
    if left_out:
        output.say(f"  without {', '.join(left_out)}", "dim")


def _line(who: str, status: int, duration_ms: float, body: bytes) -> str:
    # Control characters as JSON writes them, and nothing else.
    text = json.dumps(_text(body), ensure_ascii=False)[1:-1].replace('\\"', '"') if body else ""
    if len(text) > _SHOWN_CHARACTERS:
        text = f"{text[:_SHOWN_CHARACTERS]}…"
    return f"  {who:7} {status} in {duration_ms:.1f} ms  {text}".rstrip()


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


# --- Signatures of Standard Webhooks (standardwebhooks.com) ---------------------------------------


def _new_secret() -> str:
    return _SECRET_PREFIX + b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def _signed_headers(secret: str, message_id: str, body: bytes) -> dict[str, str]:
    """The three headers of a message that is sent now."""
    key = b64decode(secret.removeprefix(_SECRET_PREFIX))
    timestamp = str(int(time.time()))
    content = b".".join([message_id.encode(), timestamp.encode(), body])
    signature = b64encode(hmac.digest(key, content, "sha256")).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }
