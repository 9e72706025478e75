"""What a script computes with: text, digests, encodings, URLs, time."""

from scripts_engine.lua_reference.entry import Entry, Section

TEXT = Section(
    "Text",
    (
        Entry(
            "string.split",
            "string.split(str, sep [, max])",
            "An array of the parts between separators, which are plain text and not a pattern. "
            "With `max`, the last of at most `max` parts keeps the rest.",
            example='local first = string.split("tea,milk", ",")[1]',
            words="explode separate tokenize csv lines join",
        ),
        Entry(
            "string.trim",
            "string.trim(str)",
            "The string without white space (ASCII) at its ends.",
            example='local name = string.trim("  tea ")',
            words="strip whitespace blank chomp",
        ),
        Entry(
            "html.escape",
            "html.escape(str)",
            "Replaces `&`, `<`, `>`, `\"` and `'`, for text and quoted attributes.",
            example='return "<p>" .. html.escape("5 < 7") .. "</p>"',
            words="entities xss sanitise",
        ),
    ),
)

_DIGEST = "The digest, in lower-case hexadecimal."
_SIGNATURE = "The signature, in lower-case hexadecimal."
_BROKEN = "Broken: use it only where an old interface asks for it."

CRYPTO = Section(
    "crypto",
    (
        Entry(
            "crypto.md5",
            "crypto.md5(data)",
            _DIGEST,
            example='local digest = crypto.md5(params.get("body"))',
            limits=_BROKEN,
            words="hash digest checksum etag",
        ),
        Entry(
            "crypto.sha1",
            "crypto.sha1(data)",
            _DIGEST,
            example='local digest = crypto.sha1(params.get("body"))',
            limits=_BROKEN,
            words="hash digest checksum",
        ),
        Entry(
            "crypto.sha256",
            "crypto.sha256(data)",
            _DIGEST,
            example='local digest = crypto.sha256(params.get("body"))',
            words="hash digest checksum",
        ),
        Entry(
            "crypto.sha512",
            "crypto.sha512(data)",
            _DIGEST,
            example='local digest = crypto.sha512(params.get("body"))',
            words="hash digest checksum",
        ),
        Entry(
            "crypto.hmac_sha1",
            "crypto.hmac_sha1(key, data)",
            _SIGNATURE,
            example='local signature = crypto.hmac_sha1("key", params.get("body"))',
            words="signature sign verify webhook",
        ),
        Entry(
            "crypto.hmac_sha256",
            "crypto.hmac_sha256(key, data)",
            _SIGNATURE,
            example='local signature = crypto.hmac_sha256("key", params.get("body"))',
            words="signature sign verify webhook",
        ),
        Entry(
            "crypto.hmac_sha512",
            "crypto.hmac_sha512(key, data)",
            _SIGNATURE,
            example='local signature = crypto.hmac_sha512("key", params.get("body"))',
            words="signature sign verify webhook",
        ),
        Entry(
            "crypto.equals",
            "crypto.equals(a, b)",
            "Whether two strings are equal, in constant time; use it for signatures.",
            example=('local ok = crypto.equals("signature", params.header("X-Signature") or "")'),
        ),
        Entry(
            "crypto.random_hex",
            "crypto.random_hex(bytes)",
            "Random bytes in hexadecimal; `bytes` is their number.",
            example="local id = crypto.random_hex(16)",
        ),
    ),
)

_INVALID = "Raises an error if the text is invalid."

ENCODINGS = Section(
    "base64 and hex",
    (
        Entry(
            "base64.encode",
            "base64.encode(data)",
            "Base64 in the standard alphabet, padded.",
            example='local text = base64.encode("tea")',
        ),
        Entry(
            "base64.decode",
            "base64.decode(str)",
            "The decoded bytes.",
            example='local bytes = base64.decode("dGVh")',
            limits=_INVALID,
        ),
        Entry(
            "base64.urlencode",
            "base64.urlencode(data)",
            "Base64 in the URL-safe alphabet, not padded.",
            example='local text = base64.urlencode("tea")',
        ),
        Entry(
            "base64.urldecode",
            "base64.urldecode(str)",
            "The decoded bytes.",
            example='local bytes = base64.urldecode("dGVh")',
            limits=_INVALID,
        ),
        Entry(
            "hex.encode",
            "hex.encode(data)",
            "The bytes in lower-case hexadecimal.",
            example='local text = hex.encode("tea")',
        ),
        Entry(
            "hex.decode",
            "hex.decode(str)",
            "The decoded bytes.",
            example='local bytes = hex.decode("746561")',
            limits=_INVALID,
        ),
    ),
)

URL = Section(
    "url and uuid",
    (
        Entry(
            "url.encode",
            "url.encode(str)",
            "Percent-encodes reserved characters.",
            example='local query = "q=" .. url.encode("green tea")',
        ),
        Entry(
            "url.decode",
            "url.decode(str)",
            "Decodes percent-encoding.",
            example='local text = url.decode("green%20tea")',
        ),
        Entry(
            "url.parse",
            "url.parse(str)",
            "The parts that the URL has, of `{scheme, user, host, port, path, query, fragment}`, "
            "and always a `path`. Scheme and host are in lower case, an IPv6 host keeps its "
            "brackets, `port` is a number; nothing else is decoded.",
            example='local host = url.parse("https://shop.example/stock").host',
            limits=(
                "Raises an error for anything that RFC 3986 does not allow, such as a space or "
                "`\\`."
            ),
            words="uri link split hostname domain",
        ),
        Entry(
            "url.parse_query",
            "url.parse_query(str [, {multi = true}])",
            "Parses `a=1&b=2` into a table of strings, with the first value of a repeated name. "
            "With `multi`, every name has an array of all its values.",
            example='local form = url.parse_query(params.get("body"))',
            words="list decode",
        ),
        Entry(
            "url.build_query",
            "url.build_query{name = value, …}",
            "Writes `a=1&b=2`, sorted by name; an array repeats its name.",
            example='local query = url.build_query{q = "green tea"}',
            limits="Values are strings, finite numbers, booleans, or arrays of these.",
            insert="url.build_query{ }",
            words="encode parameters urlencode form",
        ),
        Entry(
            "uuid.v4",
            "uuid.v4()",
            "A random UUID.",
            example="local id = uuid.v4()",
        ),
    ),
)

TIME = Section(
    "time",
    (
        Entry(
            "time.now",
            "time.now()",
            "The time now, with fractions of a second.",
            example="local started = time.now()",
        ),
        Entry(
            "time.format",
            'time.format(seconds [, "%Y-%m-%dT%H:%M:%SZ"])',
            "The time as text, in UTC.",
            example='local day = time.format(time.now(), "%Y-%m-%d")',
        ),
        Entry(
            "time.parse",
            "time.parse(iso8601)",
            "The time of a text like `2026-11-20T12:00:00Z`, in seconds.",
            example='local seconds = time.parse("2026-11-20T12:00:00Z")',
        ),
        Entry(
            "time.add",
            "time.add(seconds, {years, months, weeks, days, hours, minutes, seconds})",
            "A later time, or an earlier one with negative amounts. Years and months are added "
            "first, at the same time of day; a day beyond the end of the month becomes its last "
            "day. The rest is exact time: a day is 86,400 seconds.",
            example="local tomorrow = time.add(time.now(), {days = 1})",
            limits="Years and months must be whole numbers.",
            insert="time.add(time.now(), {days = })",
            words="plus minus date yesterday next month interval duration",
        ),
        Entry(
            "time.in_zone",
            'time.in_zone(seconds, "Europe/Berlin")',
            "The local time in a zone of the IANA database: `{year, month, day, hour, min, sec, "
            "wday, yday, isdst, offset, abbreviation, iso}`. `wday` is 1 on Sunday, `offset` is in "
            "seconds east of UTC; to format local time, add it.",
            example='local hour = time.in_zone(time.now(), "Europe/Berlin").hour',
            limits=(
                "Names are case-sensitive. The zones are those installed on the server, read when "
                "its sandbox starts."
            ),
            insert='time.in_zone(time.now(), "")',
            words="timezone daylight saving summer tz",
        ),
    ),
)
