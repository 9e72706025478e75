"""What a script reads of its call, and what it returns and logs."""

from scripts_engine.lua_reference.entry import Entry, Section

# The names that params.get takes.
PROPERTIES = {
    "body": 'the payload, byte for byte; always a string, `""` when there is none',
    "method": "`GET` or `POST`",
    "query": "the query string, not decoded",
    "content_type": "the content type of the call",
    "remote_addr": "the address of the client",
    "run_id": "the id of this run",
    "hook_id": "the id of the hook; nil in a run that a person started",
    "script_id": "the id of the script; nil before the script is saved",
    "org_id": "the id of the organisation",
    "sender": "the hook's sender, for example `github`; nil if it has none",
    "verified": "how strongly the call proves its sender: `signed`, `body-unsigned`, "
    "`shared-secret` or `handshake-only`; nil if the hook has no sender",
    "event_id": "the sender's id of the event, if the sender signs one; nil otherwise",
    "trigger": "what started the run: `hook`, `queue` (pushed or enqueued), `schedule`, `replay`, "
    "or `admin` and `admin-graphql` for a person and a program",
    "attempt": "the number of the attempt, `1` for the first",
    "first_run_id": "the id of the first attempt: the same in all attempts at the same work",
    "scheduled_at": "the schedule's tick, as `2026-11-20T12:00:00+00:00`; nil without a schedule, "
    "and in a run of *Run now*",
}

CALL = Section(
    "params",
    (
        Entry(
            "params.get",
            "params.get(name)",
            "A property of the call as a string, or nil: "
            + ", ".join(f"`{name}`" for name in PROPERTIES)
            + ".",
            example='local order = FromJson(params.get("body"))',
            insert='params.get("body")',
        ),
        Entry(
            "params.header",
            "params.header(name)",
            "A request header, or nil. Case does not matter; repeated headers are joined with "
            '`", "`.',
            example='local shop = params.header("X-Shop") or "unknown"',
        ),
        Entry(
            "params.query",
            "params.query(name)",
            "A decoded query parameter, or nil; of a repeated one, the first.",
            example='local page = tonumber(params.query("page") or "1")',
        ),
        Entry(
            "params.json",
            "params.json()",
            "The body of the call, parsed as JSON.",
            example="local order = params.json()",
            limits="Raises the same errors as `FromJson`.",
            words="payload decode",
        ),
        Entry(
            "params.form",
            "params.form([{multi = true}])",
            "The body of an HTML form as a table of strings; `multi` gives an array for each name.",
            example="local name = params.form().name",
            limits=(
                "The content type must be `application/x-www-form-urlencoded`, or missing. "
                "`multipart/form-data`, which forms with files use, raises an error: read "
                '`params.get("body")` instead.'
            ),
            words="urlencoded post fields checkbox",
        ),
    ),
)

REPLY = Section(
    "Reply",
    (
        Entry(
            "Reply",
            "Reply{status = 200, headers = {…}, body = …}",
            "A reply with this status and these headers. The body is a string or any value that "
            "`ToJson` accepts.",
            example='return Reply{status = 201, headers = {["X-Order"] = "7"}, body = {id = 7}}',
            limits=(
                "At most 100 headers, with 16 KiB of names and values in total. A malformed name, "
                "a control character in a value or a duplicate name fails the script too."
            ),
            insert="Reply{status = 200, body = }",
        ),
    ),
)

JSON = Section(
    "JSON",
    (
        Entry(
            "FromJson",
            "FromJson(str)",
            "Parses a JSON text. Objects and arrays keep their type when encoded again, including "
            "empty ones.",
            example="local order = FromJson('{\"id\": 7}')",
            limits=(
                "Text that is not valid JSON raises an error with the position. Integers of up to "
                "64 bits stay integers; a larger one raises an error instead of losing digits."
            ),
        ),
        Entry(
            "ToJson",
            "ToJson(value [, {pretty = true}])",
            "Compact JSON; indented with `pretty`. Of tables created in Lua, a sequence becomes an "
            "array, a table with string keys an object, and an empty table an array.",
            example="local text = ToJson({id = 7}, {pretty = true})",
            limits=(
                "Mixed keys, gaps in a sequence, cycles, NaN, infinities and functions raise an "
                "error."
            ),
        ),
        Entry(
            "null",
            "null",
            "JSON's null: unlike Lua's nil, it can be a value in a table. Compare values with it "
            "(`body == null`): its type is table, and indexing it raises an error.",
            example="return {comment = null}",
        ),
        Entry(
            "array",
            "array{…}",
            "A table that `ToJson` writes as an array, even when empty.",
            example="return {items = array{}}",
        ),
        Entry(
            "object",
            "object{…}",
            "A table that `ToJson` writes as an object, even when empty.",
            example="return {prices = object{}}",
        ),
    ),
)

_LOGGED = "a table as JSON, or as `inspect` does if it has no JSON form."

LOG = Section(
    "The log",
    (
        Entry(
            "print",
            "print(…)",
            "Writes to the run's log; of a table only the type, as in Lua.",
            example='print("order", 7)',
        ),
        Entry(
            "log.debug",
            "log.debug(…)",
            f"Writes to the run's log; {_LOGGED}",
            example='log.debug("price", 4.5)',
        ),
        Entry(
            "log.info",
            "log.info(…)",
            f"Writes to the run's log; {_LOGGED}",
            example='log.info("order", 7)',
        ),
        Entry(
            "log.warn",
            "log.warn(…)",
            f"Writes a warning to the run's log; {_LOGGED}",
            example='log.warn("stock is low:", 2)',
        ),
        Entry(
            "log.error",
            "log.error(…)",
            f"Writes an error to the run's log, and the run continues; {_LOGGED}",
            example='log.error("no such order")',
        ),
        Entry(
            "inspect",
            "inspect(value)",
            "A readable text of any value, with sorted keys.",
            example="log.info(inspect({tea = 1}))",
            limits=(
                "Calls no metamethod and never raises an error. Shows 8 levels, 1,000 items of a "
                "table and 64 KiB, and marks what it leaves out with `…`. Of a table with more "
                "than 10,000 keys outside its sequence, any 10,000 are sorted."
            ),
            words="dump print table debug show pretty cycle",
        ),
    ),
)
