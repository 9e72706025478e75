"""Starters: complete small scripts, each with a sample request that Try it sends."""

from typing import NamedTuple


class Starter(NamedTuple):
    """``headers`` are lines of text, as in the form of Try it."""

    title: str
    source: str
    method: str
    headers: str
    body: str


_GITHUB = Starter(
    title="GitHub push",
    source="""\
-- Logs the commits of a push. In GitHub: Settings > Webhooks, content type application/json.
-- To check GitHub's signature as well, save the webhook's secret as GITHUB_SECRET and use:
-- local digest = crypto.hmac_sha256(secrets.get("GITHUB_SECRET"), params.get("body"))
-- if not crypto.equals("sha256=" .. digest, params.header("X-Hub-Signature-256") or "") then
--   return Reply{status = 401, body = "wrong signature"}
-- end
local event = params.header("X-GitHub-Event")
if event ~= "push" then
  return {ignored = event}
end

local push = FromJson(params.get("body"))
for _, commit in ipairs(push.commits) do
  log.info(commit.author.name, commit.message)
end
return {repository = push.repository.full_name, commits = #push.commits}
""",
    method="POST",
    headers="Content-Type: application/json\nX-GitHub-Event: push",
    body="""\
{
  "ref": "refs/heads/main",
  "repository": {"full_name": "acme/shop"},
  "commits": [
    {"id": "a1b2c3d", "message": "Add green tea", "author": {"name": "Alice"}},
    {"id": "d4e5f6a", "message": "Fix the price", "author": {"name": "Bob"}}
  ]
}""",
)

_STRIPE = Starter(
    title="Stripe event",
    source="""\
-- Logs each payment. In Stripe: Developers > Webhooks, event payment_intent.succeeded.
local event = FromJson(params.get("body"))
if event.type ~= "payment_intent.succeeded" then
  return {ignored = event.type}
end

-- Stripe sends an event again if it gets no answer. In a saved script, skip repeated events with:
-- if not store.set_if_absent("stripe:" .. event.id, true, {ttl = 604800}) then
--   return {repeated = true}
-- end
local payment = event.data.object
local amount = string.format("%.2f %s", payment.amount_received / 100, payment.currency:upper())
log.info("paid", payment.id, amount)
return {received = event.id, amount = amount}
""",
    method="POST",
    headers="Content-Type: application/json; charset=utf-8",
    body="""\
{
  "id": "evt_1NG8Du2eZvKYlo2C",
  "type": "payment_intent.succeeded",
  "data": {
    "object": {"id": "pi_3MtwBwLkdIwHu7ix", "amount_received": 1999, "currency": "eur"}
  }
}""",
)

_FORM = Starter(
    title="HTML form",
    source="""\
-- Receives a form: <form method="post" action="the hook's URL">.
local form = url.parse_query(params.get("body"))
if not (form.email or ""):find("@", 1, true) then
  return Reply{status = 422, body = "Please enter your e-mail address."}
end

log.info(form.name, "wrote", #(form.message or ""), "characters")
return "Thank you, " .. (form.name or "stranger") .. "."
""",
    method="POST",
    headers="Content-Type: application/x-www-form-urlencoded",
    body="name=Alice+Tee&email=alice%40example.com&message=Is+the+green+tea+back%3F",
)

_CSV = Starter(
    title="CSV",
    source="""\
-- Turns CSV into JSON; the first line has the names. Fields may be quoted: "tea, green".
local function fields_of(line)
  local fields, at = {}, 1
  while at <= #line + 1 do
    local field, after
    if line:sub(at, at) == '"' then
      local closing = at + 1
      while line:sub(closing, closing + 1) == '""' or line:sub(closing, closing) ~= '"' do
        if closing > #line then error("a quote is not closed") end
        closing = closing + (line:sub(closing, closing + 1) == '""' and 2 or 1)
      end
      field, after = line:sub(at + 1, closing - 1):gsub('""', '"'), closing + 1
    else
      after = line:find(",", at, true) or #line + 1
      field = line:sub(at, after - 1)
    end
    table.insert(fields, field)
    at = after + 1
  end
  return fields
end

local names, rows = nil, array{}
for line in params.get("body"):gmatch("[^\\r\\n]+") do
  local fields = fields_of(line)
  if not names then
    names = fields
  else
    local row = object{}
    for number, name in ipairs(names) do row[name] = fields[number] end
    table.insert(rows, row)
  end
end
log.info(#rows, "rows")
return rows
""",
    method="POST",
    headers="Content-Type: text/csv",
    body='product,quantity,price\n"Tea, green",2,4.50\nPot,1,19.90\n',
)

_API = Starter(
    title="Call of a JSON API",
    source="""\
-- Calls another service and replies with its answer. Here: a repository's stars on GitHub.
local order = FromJson(params.get("body"))
local repository = tostring(order.repository)
if not repository:find("^[%w._-]+/[%w._-]+$") then
  return Reply{status = 422, body = {error = "repository: write owner/name"}}
end

local ok, answer = pcall(http.request, {
  method = "GET",
  url = "https://api.github.com/repos/" .. repository,
  headers = {Accept = "application/json"},
  timeout = 5,
})
if not ok then
  log.error(answer)
  return Reply{status = 502, body = {error = "GitHub cannot be reached"}}
end
if answer.status ~= 200 then
  return Reply{status = 502, body = {error = "GitHub answered " .. answer.status}}
end
local found = FromJson(answer.body)
return {repository = found.full_name, stars = found.stargazers_count}
""",
    method="POST",
    headers="Content-Type: application/json",
    body='{"repository": "lua/lua"}',
)

ALERTS_TITLE = "Alerts to chat"
_ALERTS = Starter(
    title=ALERTS_TITLE,
    source="""\
-- Posts alerts to a chat. Make an incoming webhook there (Slack, Mattermost, Teams and others), and
-- save its URL as the secret CHAT_WEBHOOK. Then choose this script as the alert script on the page
-- of your organisation.
local alert = FromJson(params.get("body"))
local name, data = alert.subject.name, alert.data

local sentences = {
  ["script.failing"] = function() return "“" .. name .. "” fails: " .. data.error end,
  ["script.recovered"] = function() return "“" .. name .. "” works again" end,
  ["dead_letter"] = function() return "a run of “" .. name .. "” was given up: " .. data.error end,
  ["schedule.missed"] = function() return "“" .. name .. "” missed " .. data.missed .. " ticks" end,
  ["api_key.expiring"] = function() return name .. " expires on " .. data.expiresAt end,
  ["release.published"] = function()
    return "release " .. data.number .. " by " .. data.by .. " " .. data.note
  end,
}
local sentence = sentences[alert.type]
local text = alert.organisation.name .. ": " .. (sentence and sentence() or alert.type)
  .. "\\n" .. alert.subject.url

-- A script that is not saved yet gets no secrets.
local is_saved, chat = pcall(secrets.get, "CHAT_WEBHOOK")
if not (is_saved and chat) then
  log.warn("There is no secret CHAT_WEBHOOK, so nothing was posted.")
  return {text = text}
end
-- Discord takes the text as content.
local answer = http.request{method = "POST", url = chat, json = {text = text}, timeout = 5}
if answer.status >= 300 then
  return Retry{reason = "the chat answered " .. answer.status}
end
return {text = text}
""",
    method="POST",
    headers="Content-Type: application/json",
    body="""\
{
  "type": "dead_letter",
  "at": "2026-11-20T12:00:00.000Z",
  "organisation": {"id": "8b0d8f6e-50f4-4a53-b7a4-5f8a8e1c2f10", "name": "Acme"},
  "subject": {
    "id": "0f3c1a52-6a1e-4f0e-9f43-2a7d1f7c9b11",
    "name": "ship order",
    "url": "https://hooks.example.com/admin/scripts_engine/script/0f3c1a52/change/"
  },
  "data": {
    "run": "019ab0c4-0000-7000-8000-000000000000",
    "attempts": 5,
    "error": "line 3: the shop answered 503"
  },
  "version": 1
}""",
)

STARTERS = (_GITHUB, _STRIPE, _FORM, _CSV, _API, _ALERTS)


def starters() -> list[dict[str, str]]:
    """All starters as the page takes them."""
    return [starter._asdict() for starter in STARTERS]
