"""What a script has, in the words that the editor completes and explains (docs/lua.md)."""

from typing import NamedTuple


class Entry(NamedTuple):
    """``insert`` is what is typed for the person; where empty, the name."""

    name: str
    signature: str
    explanation: str
    insert: str = ""


MOONHOOK = (
    Entry(
        "params.get",
        'params.get("body")',
        "A string of the call, or nil: body (always a string), method, query, content_type, "
        "remote_addr, run_id, hook_id, script_id, org_id.",
    ),
    Entry("params.header", "params.header(name)", "A header of the call; its case is ignored."),
    Entry("params.query", "params.query(name)", "A decoded parameter of the query, or nil."),
    Entry(
        "FromJson", "FromJson(str)", "The value of a JSON text; raises and says where it is none."
    ),
    Entry(
        "ToJson",
        "ToJson(value [, {pretty = true}])",
        "The JSON text of a value; raises for mixed keys, cycles, NaN and functions.",
    ),
    Entry("null", "null", "JSON's null, which may stand in tables; nil may not."),
    Entry("array", "array{…}", "A table that ToJson writes as an array, also when it is empty."),
    Entry("object", "object{…}", "A table that ToJson writes as an object, also when it is empty."),
    Entry(
        "Reply",
        "Reply{status = 200, headers = {…}, body = …}",
        "What to return for a status or headers of your own; the body is a string or a table.",
        "Reply{status = 200, body = }",
    ),
    Entry("print", "print(…)", "Writes its arguments into the run's log."),
    Entry("log.debug", "log.debug(…)", "Writes into the run's log."),
    Entry("log.info", "log.info(…)", "Writes into the run's log."),
    Entry("log.warn", "log.warn(…)", "Writes into the run's log, as a warning."),
    Entry("log.error", "log.error(…)", "Writes into the run's log, as an error; the run goes on."),
    Entry(
        "http.get",
        "http.get(url)",
        "→ {status, headers, body}. Public addresses only; raises a string on failure.",
    ),
    Entry(
        "http.post",
        "http.post(url, body)",
        "→ {status, headers, body}. Public addresses only; raises a string on failure.",
    ),
    Entry(
        "http.request",
        "http.request{method, url, headers, body, json, timeout}",
        "→ {status, headers, body}. timeout in seconds, at most 5; 20 calls a run.",
        'http.request{method = "POST", url = "", json = }',
    ),
    Entry("store.get", "store.get(key)", "What was stored under the key, or nil."),
    Entry(
        "store.set",
        "store.set(key, value [, ttl_seconds])",
        "Keeps a value beyond the run, for all scripts of the organisation; 64 KiB each.",
    ),
    Entry("store.delete", "store.delete(key)", "Forgets a stored value."),
    Entry(
        "store.increment",
        "store.increment(key [, by])",
        "Counts, atomically, and answers with the new value.",
    ),
    Entry("secrets.get", "secrets.get(name)", "A secret of the organisation, or nil."),
    Entry("crypto.sha256", "crypto.sha256(data)", "→ lower-case hexadecimal."),
    Entry("crypto.hmac_sha256", "crypto.hmac_sha256(key, data)", "→ lower-case hexadecimal."),
    Entry("crypto.hmac_sha1", "crypto.hmac_sha1(key, data)", "→ lower-case hexadecimal."),
    Entry("crypto.equals", "crypto.equals(a, b)", "Compares in constant time: for signatures."),
    Entry("crypto.random_hex", "crypto.random_hex(bytes)", "Random bytes, in hexadecimal."),
    Entry("base64.encode", "base64.encode(data)", "Standard alphabet, padded."),
    Entry("base64.decode", "base64.decode(str)", "The bytes; raises where it is no base64."),
    Entry("base64.urlencode", "base64.urlencode(data)", "The alphabet for URLs, not padded."),
    Entry("base64.urldecode", "base64.urldecode(str)", "The bytes; raises where it is no base64."),
    Entry("hex.encode", "hex.encode(data)", "Lower-case hexadecimal."),
    Entry("hex.decode", "hex.decode(str)", "The bytes; raises where it is no hexadecimal."),
    Entry("url.encode", "url.encode(str)", "Percent-encodes what a URL may not hold."),
    Entry("url.decode", "url.decode(str)", "Undoes percent-encoding."),
    Entry("url.parse_query", "url.parse_query(str)", "a=1&b=2 as a table of strings."),
    Entry("time.now", "time.now()", "Seconds since 1970 in UTC, with fractions."),
    Entry(
        "time.format",
        'time.format(seconds [, "%Y-%m-%dT%H:%M:%SZ"])',
        "A moment as text, in UTC.",
    ),
    Entry("time.parse", "time.parse(iso8601)", "A text like 2026-11-20T12:00:00Z in seconds."),
    Entry("uuid.v4", "uuid.v4()", "A random UUID."),
)

_STANDARD = """
assert error getmetatable ipairs next pairs pcall rawequal rawget rawlen rawset select
setmetatable tonumber tostring type xpcall _G _VERSION
coroutine.close coroutine.create coroutine.isyieldable coroutine.resume coroutine.running
coroutine.status coroutine.wrap coroutine.yield
math.abs math.acos math.asin math.atan math.ceil math.cos math.deg math.exp math.floor
math.fmod math.huge math.log math.max math.maxinteger math.min math.mininteger math.modf math.pi
math.rad math.random math.randomseed math.sin math.sqrt math.tan math.tointeger math.type math.ult
os.clock os.date os.difftime os.time
string.byte string.char string.find string.format string.gmatch string.gsub string.len
string.lower string.match string.pack string.packsize string.rep string.reverse string.sub
string.unpack string.upper
table.concat table.insert table.move table.pack table.remove table.sort table.unpack
utf8.char utf8.charpattern utf8.codepoint utf8.codes utf8.len utf8.offset
"""

STANDARD = tuple(Entry(name, name, "Lua's own, as in Lua 5.4.") for name in _STANDARD.split())


def completions() -> list[dict[str, str]]:
    """For the editor: ours first."""
    return [
        {
            "name": entry.name,
            "signature": entry.signature,
            "explanation": entry.explanation,
            "insert": entry.insert or entry.name,
            "origin": origin,
        }
        for origin, entries in (("Moonhook", MOONHOOK), ("Lua", STANDARD))
        for entry in entries
    ]
