"""Recipes for docs/senders.md: how a hook and its script are set up for a sender."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recipe:
    """One sender's recipe.

    ``script`` answers ``reply`` to a call with these headers and this body; a test runs it.
    ``mistakes`` are the usual causes of refused calls.
    """

    sender: str
    value: str
    events: str
    mistakes: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    body: str
    script: str
    reply: str


RECIPES = (
    Recipe(
        sender="github",
        value="Any text of your own, for example 32 random characters. GitHub has one secret per "
        "webhook: change it here first, then there; until the overlap ends both are accepted.",
        events="`X-GitHub-Event` names the event (`push`, `pull_request`, …); the first call of a "
        "new webhook is `ping`. Choose the content type application/json: with the other one the "
        "JSON is the form field `payload`.",
        mistakes=(
            (
                "Only `X-Hub-Signature` (SHA-1) is sent: the webhook has no secret, or an old "
                "GitHub Enterprise Server sends it (`weaker-signature-only`)."
            ),
            (
                "The secret was stored with a newline at its end, by `echo` for example "
                "(`secret-trimmed`)."
            ),
            "A proxy wrote the JSON again (`body-reserialised`).",
        ),
        headers=(("X-GitHub-Event", "push"), ("Content-Type", "application/json")),
        body='{"ref": "refs/heads/main", "commits": [{}, {}], "pusher": {"name": "alice"}}',
        script="""\
local event = params.header("X-GitHub-Event")
if event ~= "push" then
  return { skipped = event }
end
local push = params.json()
return { branch = push.ref, commits = #push.commits, by = push.pusher.name }""",
        reply='{"branch":"refs/heads/main","by":"alice","commits":2}',
    ),
    Recipe(
        sender="stripe",
        value="The endpoint's `whsec_…`, exactly as shown. It is used as text; each endpoint, and "
        "`stripe listen` too, has its own.",
        events="`type` in the body names the event (`invoice.paid`, …), `data.object` holds the "
        "object. Events may arrive in any order: fetch the object where its newest state matters.",
        mistakes=(
            (
                "The secret belongs to another endpoint, or to the other of test and live mode "
                "(`other-hook`, `previous-secret`)."
            ),
            (
                "The calls come from a sender of Standard Webhooks, which decodes the secret "
                "(`secret-base64-decoded`)."
            ),
            "The call was held up for more than 300 s (`time`).",
        ),
        headers=(("Content-Type", "application/json"),),
        body='{"id": "evt_1", "type": "invoice.paid", "data": {"object": {"id": "in_1", '
        '"amount_paid": 1200}}}',
        script="""\
local event = params.json()
if event.type ~= "invoice.paid" then
  return { skipped = event.type }
end
local invoice = event.data.object
return { event = event.id, invoice = invoice.id, paid = invoice.amount_paid }""",
        reply='{"event":"evt_1","invoice":"in_1","paid":1200}',
    ),
    Recipe(
        sender="slack",
        value="The app's Signing Secret, not its verification token and not the bot token.",
        events="Events API calls are JSON with `type` `event_callback`. The platform itself "
        "answers `url_verification`, which starts no run. Slash commands and interactivity are "
        "forms: read them with `params.form()`. Slack waits for 3 s and takes 200 only: choose the "
        "reply mode Accepted for slow work.",
        mistakes=(
            "The Signing Secret of another app is set (`other-hook`, `secret-unknown`).",
            (
                "The hook's secret was entered after Slack verified the URL (`no-secret`): enter "
                "it first, then paste the URL again."
            ),
            "The clock of one side is wrong by more than 300 s (`time`).",
        ),
        headers=(("Content-Type", "application/json"),),
        body='{"type": "event_callback", "event_id": "Ev1", "event": {"type": "app_mention", '
        '"user": "U1", "text": "hello"}}',
        script="""\
local call = params.json()
local event = call.event
if event.type ~= "app_mention" then
  return { skipped = event.type }
end
return { from = event.user, text = event.text }""",
        reply='{"from":"U1","text":"hello"}',
    ),
    Recipe(
        sender="shopify",
        value="The app's client secret; for webhooks that were made in the shop's settings, the "
        "secret that the Webhooks page shows. After a rotation Shopify may use the old one for up "
        "to an hour: keep the overlap.",
        events="`X-Shopify-Topic` names the event (`orders/create`, …), `X-Shopify-Shop-Domain` "
        "the shop. Shopify waits for 5 s in all; a subscription whose calls keep failing is "
        "deleted.",
        mistakes=(
            (
                "The secret of the shop's settings is set where the app's client secret signs, or "
                "the other way round (`secret-unknown`)."
            ),
            "A proxy wrote the JSON again (`body-reserialised`).",
        ),
        headers=(
            ("X-Shopify-Topic", "orders/create"),
            ("X-Shopify-Shop-Domain", "tea.myshopify.example"),
            ("Content-Type", "application/json"),
        ),
        body='{"id": 820982911946154508, "total_price": "19.00", "line_items": [{}, {}]}',
        script="""\
local order = params.json()
return {
  shop = params.header("X-Shopify-Shop-Domain"),
  topic = params.header("X-Shopify-Topic"),
  items = #order.line_items,
  total = order.total_price,
}""",
        reply='{"items":2,"shop":"tea.myshopify.example","topic":"orders/create","total":"19.00"}',
    ),
    Recipe(
        sender="standard-webhooks",
        value="`whsec_` and 24 to 64 bytes in base64, or the public key `whpk_…` of senders that "
        "sign with Ed25519. A sender that rotates its secret signs with both meanwhile.",
        events="By the standard's advice `type` in the body names the event and `data` holds it. "
        "Svix and many others send this way; the sender `svix` also reads `svix-…` headers.",
        mistakes=(
            "The sender uses the text of the secret without decoding it (`secret-not-decoded`).",
            "The sender writes milliseconds (`timestamp-unit`).",
            "The call is older than 300 s (`time`).",
        ),
        headers=(("webhook-id", "msg_1"), ("Content-Type", "application/json")),
        body='{"type": "contact.created", "data": {"id": "c1"}}',
        script="""\
local event = params.json()
return { message = params.header("webhook-id"), type = event.type, id = event.data.id }""",
        reply='{"id":"c1","message":"msg_1","type":"contact.created"}',
    ),
    Recipe(
        sender="hmac",
        value="Text, base64 or hexadecimal digits, as the sender decodes it.",
        events="Whatever the sender sends. Describe its signature by the header, the algorithm "
        "(SHA-1, SHA-256, SHA-512), the encoding (hex, base64), the prefix and the template of the "
        "signed text, for example `{timestamp}.{body}`. `{body}` occurs exactly once; a time "
        "counts only if `{timestamp}` is signed, an id only if `{id}` is, or if JSON pointers find "
        "it in the body.",
        mistakes=(
            (
                "The signature is written in the other encoding (`encoding`), or made with another "
                "algorithm (`algorithm`)."
            ),
            (
                "The secret is decoded, or not decoded, by the sender (`secret-base64-decoded`, "
                "`secret-hex-decoded`, `secret-not-decoded`)."
            ),
            (
                "`{url}` is signed and differs in scheme, host or port (`url-scheme`, `url-host`): "
                "set the signed URL."
            ),
        ),
        headers=(("Content-Type", "application/json"),),
        body='{"event": "stock", "sku": "tea", "left": 3}',
        script="""\
local stock = params.json()
return { sku = stock.sku, is_low = stock.left < 5 }""",
        reply='{"is_low":true,"sku":"tea"}',
    ),
)
