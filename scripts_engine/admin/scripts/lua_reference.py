"""The functions available to scripts, as the editor completes and explains them (docs/lua.md)."""

from typing import NamedTuple


class Entry(NamedTuple):
    """A completion. ``insert`` is the text put into the editor; the name when empty.

    ``words`` are what a person may search for who does not know the name.
    """

    name: str
    signature: str
    explanation: str
    insert: str = ""
    words: str = ""


MOONHOOK = (
    Entry(
        "params.get",
        'params.get("body")',
        "A property of the call as a string, or nil: body (always a string), method, query, "
        "content_type, remote_addr, run_id, hook_id, script_id, org_id.",
    ),
    Entry("params.header", "params.header(name)", "A request header; names are case-insensitive."),
    Entry(
        "params.query",
        "params.query(name)",
        "A decoded query parameter, or nil; of a repeated one, the first.",
    ),
    Entry(
        "params.json",
        "params.json()",
        "The body of the call, parsed as JSON; raises an error with the position.",
        words="body payload decode parse FromJson",
    ),
    Entry(
        "params.form",
        "params.form([{multi = true}])",
        "The body of an HTML form as a table of strings; multi gives an array for each name. "
        "Not for multipart.",
        words="body urlencoded x-www-form-urlencoded post fields checkbox",
    ),
    Entry("FromJson", "FromJson(str)", "Parses JSON; raises an error with the position."),
    Entry(
        "ToJson",
        "ToJson(value [, {pretty = true}])",
        "Writes a value as JSON; raises for mixed keys, cycles, NaN and functions.",
    ),
    Entry("null", "null", "JSON's null. Tables can hold it, unlike nil."),
    Entry("array", "array{…}", "A table that ToJson writes as an array, even when empty."),
    Entry("object", "object{…}", "A table that ToJson writes as an object, even when empty."),
    Entry(
        "Reply",
        "Reply{status = 200, headers = {…}, body = …}",
        "Return this to set the status or headers. The body is a string or a table.",
        "Reply{status = 200, body = }",
    ),
    Entry("print", "print(…)", "Writes its arguments to the run's log."),
    Entry("log.debug", "log.debug(…)", "Writes to the run's log; tables as JSON."),
    Entry("log.info", "log.info(…)", "Writes to the run's log; tables as JSON."),
    Entry("log.warn", "log.warn(…)", "Writes a warning to the run's log."),
    Entry("log.error", "log.error(…)", "Writes an error to the run's log; the run continues."),
    Entry(
        "inspect",
        "inspect(value)",
        "A readable text of any value: 8 levels deep, 1,000 items a table, 64 KiB. Never raises.",
        words="dump print table debug show pretty cycle",
    ),
    Entry(
        "http.get",
        "http.get(url [, headers])",
        "→ {status, headers, body}. Public addresses only; raises a string on failure.",
    ),
    Entry("http.head", "http.head(url [, headers])", "Like http.get, for the headers alone."),
    Entry("http.delete", "http.delete(url [, headers])", "Like http.get, with DELETE."),
    Entry(
        "http.post",
        "http.post(url [, body [, headers]])",
        "→ {status, headers, body}. Public addresses only; raises a string on failure.",
    ),
    Entry("http.put", "http.put(url [, body [, headers]])", "Like http.post, with PUT."),
    Entry("http.patch", "http.patch(url [, body [, headers]])", "Like http.post, with PATCH."),
    Entry(
        "http.request",
        "http.request{method, url, headers, body, json, timeout}",
        "→ {status, headers, body}. timeout in seconds, maximum 5; 20 calls per run.",
        'http.request{method = "POST", url = "", json = }',
    ),
    Entry("store.get", "store.get(key)", "The value stored under the key, or nil."),
    Entry(
        "store.set",
        "store.set(key, value [, ttl_seconds])",
        "Stores a value that all scripts of the organisation share between runs; maximum 64 KiB.",
    ),
    Entry(
        "store.set_if_absent",
        "store.set_if_absent(key, value [, {ttl = seconds}])",
        "Stores the value unless the key has one; atomic. Returns whether it was stored.",
        "store.set_if_absent(key, true, {ttl = 3600})",
    ),
    Entry("store.delete", "store.delete(key)", "Deletes a stored value."),
    Entry(
        "store.increment",
        "store.increment(key [, by])",
        "Adds 1, or by, atomically and returns the new value.",
    ),
    Entry(
        "store.list",
        "store.list(prefix, limit)",
        "The first keys that begin with the prefix, sorted; the limit is 1 to 1,000.",
    ),
    Entry("secrets.get", "secrets.get(name)", "A secret of the organisation, or nil."),
    Entry(
        "crypto.md5",
        "crypto.md5(data)",
        "→ lower-case hexadecimal. Broken: only where an old interface asks for it.",
        words="hash digest checksum etag",
    ),
    Entry(
        "crypto.sha1",
        "crypto.sha1(data)",
        "→ lower-case hexadecimal. Broken: only where an old interface asks for it.",
        words="hash digest checksum",
    ),
    Entry("crypto.sha256", "crypto.sha256(data)", "→ lower-case hexadecimal."),
    Entry(
        "crypto.sha512",
        "crypto.sha512(data)",
        "→ lower-case hexadecimal.",
        words="hash digest checksum",
    ),
    Entry("crypto.hmac_sha1", "crypto.hmac_sha1(key, data)", "→ lower-case hexadecimal."),
    Entry("crypto.hmac_sha256", "crypto.hmac_sha256(key, data)", "→ lower-case hexadecimal."),
    Entry(
        "crypto.hmac_sha512",
        "crypto.hmac_sha512(key, data)",
        "→ lower-case hexadecimal.",
        words="signature sign verify webhook",
    ),
    Entry(
        "crypto.equals", "crypto.equals(a, b)", "Compares in constant time; use it for signatures."
    ),
    Entry("crypto.random_hex", "crypto.random_hex(bytes)", "Random bytes in hexadecimal."),
    Entry("base64.encode", "base64.encode(data)", "Standard alphabet, padded."),
    Entry("base64.decode", "base64.decode(str)", "The decoded bytes; raises if invalid."),
    Entry("base64.urlencode", "base64.urlencode(data)", "URL-safe alphabet, not padded."),
    Entry("base64.urldecode", "base64.urldecode(str)", "The decoded bytes; raises if invalid."),
    Entry("hex.encode", "hex.encode(data)", "Lower-case hexadecimal."),
    Entry("hex.decode", "hex.decode(str)", "The decoded bytes; raises if invalid."),
    Entry("url.encode", "url.encode(str)", "Percent-encodes reserved characters."),
    Entry("url.decode", "url.decode(str)", "Decodes percent-encoding."),
    Entry(
        "url.parse",
        "url.parse(str)",
        "→ {scheme, user, host, port, path, query, fragment}; raises unless it follows RFC 3986.",
        words="uri link split hostname domain",
    ),
    Entry(
        "url.parse_query",
        "url.parse_query(str [, {multi = true}])",
        "Parses a=1&b=2 into a table of strings, the first of a repeated name; multi gives an "
        "array for each name.",
        words="repeated values list decode",
    ),
    Entry(
        "url.build_query",
        "url.build_query{name = value, …}",
        "→ a=1&b=2, sorted by name; an array repeats its name.",
        "url.build_query{ }",
        words="encode parameters urlencode form",
    ),
    Entry(
        "html.escape",
        "html.escape(str)",
        "Escapes & < > and quotes for HTML.",
        words="entities xss quote sanitise",
    ),
    Entry(
        "string.split",
        "string.split(str, sep [, max])",
        "An array of the parts between plain separators; the last of max parts keeps the rest.",
        words="explode separate tokenize csv lines join",
    ),
    Entry(
        "string.trim",
        "string.trim(str)",
        "The string without white space at its ends.",
        words="strip whitespace blank space chomp",
    ),
    Entry("time.now", "time.now()", "Seconds since 1970 in UTC, with fractions."),
    Entry(
        "time.format",
        'time.format(seconds [, "%Y-%m-%dT%H:%M:%SZ"])',
        "Formats a time in UTC.",
    ),
    Entry(
        "time.parse", "time.parse(iso8601)", "Parses text like 2026-11-20T12:00:00Z into seconds."
    ),
    Entry(
        "time.add",
        "time.add(seconds, {years, months, weeks, days, hours, minutes, seconds})",
        "A later or earlier time in UTC; a day that a month lacks becomes its last day.",
        "time.add(time.now(), {days = })",
        words="plus minus date tomorrow yesterday next month later interval duration",
    ),
    Entry(
        "time.in_zone",
        'time.in_zone(seconds, "Europe/Berlin")',
        "→ {year, month, day, hour, min, sec, wday, yday, isdst, offset, abbreviation, iso}: "
        "local time.",
        'time.in_zone(time.now(), "")',
        words="timezone local time daylight saving summer utc offset IANA tz",
    ),
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

STANDARD = tuple(Entry(name, name, "Standard Lua 5.4.") for name in _STANDARD.split())


def completions() -> list[dict[str, str]]:
    """All entries as the editor takes them, Moonhook's own first."""
    return [
        {
            "name": entry.name,
            "signature": entry.signature,
            "explanation": entry.explanation,
            "insert": entry.insert or entry.name,
            "words": entry.words,
            "origin": origin,
        }
        for origin, entries in (("Moonhook", MOONHOOK), ("Lua", STANDARD))
        for entry in entries
    ]
