"""Writes docs/senders.md from the table of senders and from the recipes in senders.toml.

python -m docs.tools.senders
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from hooks.senders import PRESETS, Handshake, Preset

PAGE = Path(__file__).resolve().parents[1] / "senders.md"


class Recipe(NamedTuple):
    """How a hook and its script are set up for a sender; senders.toml describes the fields."""

    sender: str
    value: str
    events: str
    mistakes: list[str]
    headers: Mapping[str, str]
    body: str
    script: str
    reply: str


def read_recipes() -> list[Recipe]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    return [Recipe(sender, **fields) for sender, fields in table.items()]


_INTRODUCTION = """\
# Senders

<!-- Generated from hooks/senders by docs/tools/senders.py: edit it there. -->

A hook may name its sender. Then only calls that this sender signed run the script; the call token
stays required. Set the sender and its signing secret on the hook's page, or by `setSender` and
`setSigningSecret`. `manage.py check_senders` tries calls of every sender against the verification.

- Two signing secrets are live at most: the new one, and the one before until its overlap ends.
- Signatures are compared over the bytes of the body as received. At most 8 signatures of a call are
  tried. A header that occurs twice, is empty or is not ASCII is refused.
- A signed time may differ from the server's by the tolerance, in both directions.
- Bytes cannot move from one signed field to the next while the signature holds. An id, or a
  query, that contains the separator beside it in the signed text is refused. Beside a signed URL,
  the body must be a JSON object (Square, Trello) or begin with `{` or `[` (HubSpot). A template
  of `hmac` that does not say where a field ends cannot be set. Only Twilio's forms have [no
  boundaries](#twilio-forms).
- The event id comes from signed material only. Where a sender names none, up to 3 JSON pointers
  may find it in a signed body. Of several parts, joined by colons, all but the last have a
  backslash before their own colons and backslashes.
- Handshakes are answered by the platform and start no run.
- A refused call gets 401 `invalid-signature`, without the reason; after 60 of a client within a
  minute, 429. A right signature is never refused because of wrong ones.
- The hook's refused calls show the reason and hints. No secret and no expected signature is shown
  there.

## Strengths

| strength | what a verified call proves |
| --- | --- |
| `signed` | the sender made this body; of a Twilio form, [its bytes in this order](#twilio-forms) |
| `body-unsigned` | the sender made a call at this time; its body may have been changed |
| `shared-secret` | the caller knows a secret that each call carries in clear |
| `handshake-only` | nothing beyond the call token |

`params.get("verified")` is about the body. It says nothing of the query string, nor of headers such
as `X-GitHub-Event`: anyone who has a signed call and the call token can send that call again with
others, until its signed time is too old, or at any time if the sender signs none. So decide by what
is in the body where you can. Only these senders sign the URL, and with it the query:
{url_signers}, and `hmac` with `{url}` in its template.

### Twilio forms

Twilio signs a form as the URL, followed by the form's names and values, sorted, with nothing
between them, and equal pairs once. So its signature cannot tell `Digits=1234` from `Digits1234=`,
nor the end of the query from the first name: anyone who has a signed call and the call token can
send its bytes divided otherwise between query, names and values. Compare names and values with
what Twilio documents before you act on them; a signed URL keeps the query out of it. A
`bodySHA256` counts only at the end of the URL, where Twilio appends it: elsewhere it could be the
text of a message. A form whose text ends as such a URL is refused, and one without any text counts
as its bytes.

## All senders

Retries and waiting times are the senders' own: check theirs before you rely on them.

"""


def page() -> str:
    """The page in Markdown."""
    parts = [
        _INTRODUCTION.replace("{url_signers}", _url_signers()),
        _overview(),
        "\n## Handshakes\n\n",
        _handshakes(),
        "\n## Where to set them up\n\n",
        *(_steps(preset) for preset in PRESETS.values()),
        "## Recipes\n",
        *(_recipe(recipe) for recipe in read_recipes()),
    ]
    return "".join(parts)


def _url_signers() -> str:
    return ", ".join(each.title for each in PRESETS.values() if "{url}" in each.template)


def _overview() -> str:
    head = (
        "sender",
        "name",
        "strength",
        "signature",
        "event id",
        "tolerance",
        "retries",
        "waits",
        "accepted with",
    )
    return _table(head, (_row(preset) for preset in PRESETS.values()))


def _row(preset: Preset) -> tuple[str, ...]:
    headers = ", ".join(f"`{names.signature}`" for names in preset.headers)
    patience = preset.patience_seconds
    return (
        preset.title,
        f"`{preset.name}`",
        f"`{preset.strength}`",
        headers or _PLACES.get(preset.name, "none"),
        preset.event_id_place or "none",
        f"{preset.tolerance_seconds:,} s" if preset.tolerance_seconds else "",
        preset.retries,
        f"{patience} s" if patience else "",
        str(preset.accepted_status),
    )


# Where the proof is, for senders that do not have it in a header of a fixed name.
_PLACES = {
    "microsoft-graph": "`clientState` in the body",
    "mailgun": "`signature` in the body",
    "hmac": "a header of your choice",
}

_HANDSHAKES = {
    Handshake.SLACK: ("signed, `type` `url_verification`", "`challenge`"),
    Handshake.META: ("`hub.mode=subscribe` with the hook's verify token", "`hub.challenge`"),
    Handshake.MICROSOFT_GRAPH: ("`validationToken` in the query", "the token"),
    Handshake.DROPBOX: ("`challenge` in the query", "the challenge"),
    Handshake.X: ("`crc_token` in the query", "`response_token`, made with the newest secret"),
    Handshake.DISCORD: ("signed `PING`, or `type` 0", 'JSON `{"type":1}`, or 204'),
    Handshake.ZOOM: ("signed, `endpoint.url_validation`", "`plainToken` and `encryptedToken`"),
    Handshake.ASANA: (
        (
            "`X-Hook-Secret`, once, within 10 minutes of Expect a handshake; later signed and "
            "without events"
        ),
        "204 with the header, which becomes the signing secret; later 200, empty",
    ),
    Handshake.XERO: ("signed, without events", "200, empty"),
    Handshake.CLOUDEVENTS: (
        "`WebHook-Request-Origin`",
        "`WebHook-Allowed-Origin`, `WebHook-Allowed-Rate`, `Allow`",
    ),
}


def _handshakes() -> str:
    rows = (
        (preset.title, preset.handshake_method, *_HANDSHAKES[preset.handshake])
        for preset in PRESETS.values()
        if preset.handshake in _HANDSHAKES
    )
    return _table(("sender", "method", "request", "answer"), rows)


def _steps(preset: Preset) -> str:
    return f"### {preset.title}: set-up\n\n{_numbered(preset)}\nSee “{preset.page}”.\n\n"


def _numbered(preset: Preset) -> str:
    return "".join(f"{number}. {step}\n" for number, step in enumerate(preset.steps, start=1))


def _recipe(recipe: Recipe) -> str:
    preset = PRESETS[recipe.sender]
    mistakes = "".join(f"- {mistake}\n" for mistake in recipe.mistakes)
    headers = "".join(f"{name}: {value}\n" for name, value in recipe.headers.items())
    return f"""
### {preset.title}

{_numbered(preset)}
**Secret.** {recipe.value}

**Events.** {recipe.events}

**What the script sees.** `params.get("sender")` is `{preset.name}`, `params.get("verified")` is
`{preset.strength}`, {_event_id_seen(preset)}

**Repeated deliveries.** {_deliveries(preset)} Retries: {preset.retries}.

**Refused calls** get 401 and run nothing. The usual causes, with the hint that names each:

{mistakes}
A call:

```
{headers}
{recipe.body}
```

A script for it, and its reply:

```lua
{recipe.script}
--> {recipe.reply}
```
"""


def _event_id_seen(preset: Preset) -> str:
    if preset.has_event_id:
        return f'and `params.get("event_id")` is the id\nfrom {preset.event_id_place}.'
    return 'and `params.get("event_id")`\nis nil unless the hook has JSON pointers.'


def _deliveries(preset: Preset) -> str:
    if preset.has_event_id:
        return (
            "Deliveries with the same event id run the script once, by default; the others get the "
            "recorded reply."
        )
    return (
        "No signed material names the event, so every delivery runs the script, by default. JSON "
        "pointers into the body, or the idempotency BodyHash (equal method, path, query and body), "
        "recognise repeated ones."
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page())
