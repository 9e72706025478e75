---@meta
-- What scripts can use on a Moonhook server.

---@class moonhook.params
params = {}

---@class moonhook.log
log = {}

---@class moonhook.string

---@class moonhook.html
html = {}

---@class moonhook.http
http = {}

---@class moonhook.store
store = {}

---@class moonhook.queue
queue = {}

---@class moonhook.secrets
secrets = {}

---@class moonhook.crypto
crypto = {}

---@class moonhook.base64
base64 = {}

---@class moonhook.hex
hex = {}

---@class moonhook.url
url = {}

---@class moonhook.uuid
uuid = {}

---@class moonhook.time
time = {}

---A property of the call as a string, or nil: `body`, `method`, `path`, `query`, `content_type`, `remote_addr`, `run_id`, `hook_id`, `script_id`, `org_id`, `sender`, `verified`, `event_id`, `trigger`, `attempt`, `first_run_id`, `scheduled_at`.
---
---`params.get(name)`
---@param name any
---@return any
function params.get(name) end

---A request header, or nil. Case does not matter; repeated headers are joined with `", "`.
---
---`params.header(name)`
---@param name any
---@return any
function params.header(name) end

---A decoded query parameter, or nil; of a repeated one, the first.
---
---`params.query(name)`
---@param name any
---@return any
function params.query(name) end

---The body of the call, parsed as JSON.
---
---Raises the same errors as `FromJson`.
---
---`params.json()`
---@return any
function params.json() end

---The body of an HTML form as a table of strings; `multi` gives an array for each name.
---
---The content type must be `application/x-www-form-urlencoded`, or missing. `multipart/form-data`, which forms with files use, raises an error: read `params.get("body")` instead.
---
---`params.form([{multi = true}])`
---@param options? any
---@return any
function params.form(options) end

---A reply with this status and these headers. The body is a string or any value that `ToJson` accepts.
---
---At most 100 headers, with 16 KiB of names and values in total. A malformed name, a control character in a value or a duplicate name fails the script too.
---
---`Reply{status = 200, headers = {…}, body = …}`
---@param options any
---@return any
function Reply(options) end

---Parses a JSON text. Objects and arrays keep their type when encoded again, including empty ones.
---
---Text that is not valid JSON raises an error with the position. Integers of up to 64 bits stay integers; a larger one raises an error instead of losing digits.
---
---`FromJson(str)`
---@param str any
---@return any
function FromJson(str) end

---Compact JSON; indented with `pretty`. Of tables created in Lua, a sequence becomes an array, a table with string keys an object, and an empty table an array.
---
---Mixed keys, gaps in a sequence, cycles, NaN, infinities and functions raise an error.
---
---`ToJson(value [, {pretty = true}])`
---@param value any
---@param options? any
---@return any
function ToJson(value, options) end

---JSON's null: unlike Lua's nil, it can be a value in a table. Compare values with it (`body == null`): its type is table, and indexing it raises an error.
---
---`null`
---@type any
null = {}

---A table that `ToJson` writes as an array, even when empty.
---
---`array{…}`
---@param options any
---@return any
function array(options) end

---A table that `ToJson` writes as an object, even when empty.
---
---`object{…}`
---@param options any
---@return any
function object(options) end

---Writes to the run's log; of a table only the type, as in Lua.
---
---`print(…)`
---@param ... any
---@return any
function print(...) end

---Writes to the run's log; a table as JSON, or as `inspect` does if it has no JSON form.
---
---`log.debug(…)`
---@param ... any
---@return any
function log.debug(...) end

---Writes to the run's log; a table as JSON, or as `inspect` does if it has no JSON form.
---
---`log.info(…)`
---@param ... any
---@return any
function log.info(...) end

---Writes a warning to the run's log; a table as JSON, or as `inspect` does if it has no JSON form.
---
---`log.warn(…)`
---@param ... any
---@return any
function log.warn(...) end

---Writes an error to the run's log, and the run continues; a table as JSON, or as `inspect` does if it has no JSON form.
---
---`log.error(…)`
---@param ... any
---@return any
function log.error(...) end

---A readable text of any value, with sorted keys.
---
---Calls no metamethod and never raises an error. Shows 8 levels, 1,000 items of a table and 64 KiB, and marks what it leaves out with `…`. Of a table with more than 10,000 keys outside its sequence, any 10,000 are sorted.
---
---`inspect(value)`
---@param value any
---@return any
function inspect(value) end

---An array of the parts between separators, which are plain text and not a pattern. With `max`, the last of at most `max` parts keeps the rest.
---
---`string.split(str, sep [, max])`
---@param str any
---@param sep any
---@param max? any
---@return any
function string.split(str, sep, max) end

---The string without white space (ASCII) at its ends.
---
---`string.trim(str)`
---@param str any
---@return any
function string.trim(str) end

---Replaces `&`, `<`, `>`, `"` and `'`, for text and quoted attributes.
---
---`html.escape(str)`
---@param str any
---@return any
function html.escape(str) end

---A GET request. Returns `{status, headers, body}`.
---
---Public addresses only; 20 calls per run. A call that fails raises a string.
---
---`http.get(url [, headers])`
---@param url any
---@param headers? any
---@return any
function http.get(url, headers) end

---Like `http.get`, for the status and headers alone.
---
---`http.head(url [, headers])`
---@param url any
---@param headers? any
---@return any
function http.head(url, headers) end

---Like `http.get`, with DELETE.
---
---`http.delete(url [, headers])`
---@param url any
---@param headers? any
---@return any
function http.delete(url, headers) end

---A POST request; the body is a string. Returns `{status, headers, body}`.
---
---Public addresses only; 20 calls per run. A call that fails raises a string.
---
---`http.post(url [, body [, headers]])`
---@param url any
---@param body? any
---@param headers? any
---@return any
function http.post(url, body, headers) end

---Like `http.post`, with PUT.
---
---`http.put(url [, body [, headers]])`
---@param url any
---@param body? any
---@param headers? any
---@return any
function http.put(url, body, headers) end

---Like `http.post`, with PATCH.
---
---`http.patch(url [, body [, headers]])`
---@param url any
---@param body? any
---@param headers? any
---@return any
function http.patch(url, body, headers) end

---A request with any of these methods, or OPTIONS; `json` is a value in place of a body. Returns `{status, headers, body}`.
---
---`timeout` is in seconds, at most 5. Public addresses only; 20 calls per run. A call that fails raises a string.
---
---`http.request{url, method, headers, body, json, timeout}`
---@param options any
---@return any
function http.request(options) end

---The value stored under the key, or nil.
---
---`store.get(key)`
---@param key any
---@return any
function store.get(key) end

---Replaces the value, which all scripts of the organisation share between runs. Without a time to live, it is kept until it is deleted.
---
---Any value that `ToJson` accepts, at most 64 KiB; 10,000 keys of an organisation. A key is a string of 1 to 256 bytes.
---
---`store.set(key, value [, ttl_seconds])`
---@param key any
---@param value any
---@param ttl_seconds? any
---@return any
function store.set(key, value, ttl_seconds) end

---Sets the value only if the key has none, or one that has expired; returns whether it was set. Atomic: of any number of concurrent runs, exactly one gets `true`.
---
---`store.set_if_absent(key, value [, {ttl = seconds}])`
---@param key any
---@param value any
---@param options? any
---@return any
function store.set_if_absent(key, value, options) end

---Adds 1, or `by`, and returns the new number. Atomic.
---
---`store.increment(key [, by])`
---@param key any
---@param by? any
---@return any
function store.increment(key, by) end

---Deletes the value.
---
---`store.delete(key)`
---@param key any
---@return any
function store.delete(key) end

---The first keys that begin with the prefix, in byte order, without those that have expired. In the prefix, every character is literal.
---
---The limit is 1 to 1,000.
---
---`store.list(prefix, limit)`
---@param prefix any
---@param limit any
---@return any
function store.list(prefix, limit) end

---Runs a script of the organisation later, given by its name or id, with this payload. Returns the id of its run, and whether the run is new: with a `key`, the run that was pushed for the script with it in the last 24 hours is found, and nothing is pushed. A run in progress that pushes with the key is waited for. Pushes take effect only if the run that makes them succeeds.
---
---The payload is a string or any value that `ToJson` accepts, at most 256 KiB; nil is an empty payload. The delay is at most 30 days, a key 1 to 200 characters, attempts 1 to 20. 20 new pushes in a run, and 20 runs that push one another. A push that is refused raises a string, also if the organisation's queue is full.
---
---`queue.push(script, payload [, {delay = seconds, key = …, attempts = n}])`
---@param script any
---@param payload any
---@param options? any
---@return any
function queue.push(script, payload, options) end

---Return it if the work cannot be done now. The queue tries it again after this number of seconds, or after its usual delay. A caller that waits for the reply gets 503 with `Retry-After`.
---
---Both fields are optional. `after` is 0 to 86,400; the reason is for administrators, and cut to 4 KiB. The run has failed: it counts as an attempt.
---
---`Retry{after = seconds, reason = …}`
---@param options any
---@return any
function Retry(options) end

---Return it if another attempt would be in vain: the queue makes none. A caller that waits for the reply gets 500.
---
---The reason is optional, for administrators, and cut to 4 KiB.
---
---`Fail{reason = …}`
---@param options any
---@return any
function Fail(options) end

---A value set by an administrator of the organisation, or nil.
---
---A run can get at most 50 different secrets.
---
---`secrets.get(name)`
---@param name any
---@return any
function secrets.get(name) end

---The digest, in lower-case hexadecimal.
---
---Broken: use it only where an old interface asks for it.
---
---`crypto.md5(data)`
---@param data any
---@return any
function crypto.md5(data) end

---The digest, in lower-case hexadecimal.
---
---Broken: use it only where an old interface asks for it.
---
---`crypto.sha1(data)`
---@param data any
---@return any
function crypto.sha1(data) end

---The digest, in lower-case hexadecimal.
---
---`crypto.sha256(data)`
---@param data any
---@return any
function crypto.sha256(data) end

---The digest, in lower-case hexadecimal.
---
---`crypto.sha512(data)`
---@param data any
---@return any
function crypto.sha512(data) end

---The signature, in lower-case hexadecimal.
---
---`crypto.hmac_sha1(key, data)`
---@param key any
---@param data any
---@return any
function crypto.hmac_sha1(key, data) end

---The signature, in lower-case hexadecimal.
---
---`crypto.hmac_sha256(key, data)`
---@param key any
---@param data any
---@return any
function crypto.hmac_sha256(key, data) end

---The signature, in lower-case hexadecimal.
---
---`crypto.hmac_sha512(key, data)`
---@param key any
---@param data any
---@return any
function crypto.hmac_sha512(key, data) end

---Whether two strings are equal, in constant time; use it for signatures.
---
---`crypto.equals(a, b)`
---@param a any
---@param b any
---@return any
function crypto.equals(a, b) end

---Random bytes in hexadecimal; `bytes` is their number.
---
---`crypto.random_hex(bytes)`
---@param bytes any
---@return any
function crypto.random_hex(bytes) end

---Base64 in the standard alphabet, padded.
---
---`base64.encode(data)`
---@param data any
---@return any
function base64.encode(data) end

---The decoded bytes.
---
---Raises an error if the text is invalid.
---
---`base64.decode(str)`
---@param str any
---@return any
function base64.decode(str) end

---Base64 in the URL-safe alphabet, not padded.
---
---`base64.urlencode(data)`
---@param data any
---@return any
function base64.urlencode(data) end

---The decoded bytes.
---
---Raises an error if the text is invalid.
---
---`base64.urldecode(str)`
---@param str any
---@return any
function base64.urldecode(str) end

---The bytes in lower-case hexadecimal.
---
---`hex.encode(data)`
---@param data any
---@return any
function hex.encode(data) end

---The decoded bytes.
---
---Raises an error if the text is invalid.
---
---`hex.decode(str)`
---@param str any
---@return any
function hex.decode(str) end

---Percent-encodes reserved characters.
---
---`url.encode(str)`
---@param str any
---@return any
function url.encode(str) end

---Decodes percent-encoding.
---
---`url.decode(str)`
---@param str any
---@return any
function url.decode(str) end

---The parts that the URL has, of `{scheme, user, host, port, path, query, fragment}`, and always a `path`. Scheme and host are in lower case, an IPv6 host keeps its brackets, `port` is a number; nothing else is decoded.
---
---Raises an error for anything that RFC 3986 does not allow, such as a space or `\`.
---
---`url.parse(str)`
---@param str any
---@return any
function url.parse(str) end

---Parses `a=1&b=2` into a table of strings, with the first value of a repeated name. With `multi`, every name has an array of all its values.
---
---`url.parse_query(str [, {multi = true}])`
---@param str any
---@param options? any
---@return any
function url.parse_query(str, options) end

---Writes `a=1&b=2`, sorted by name; an array repeats its name.
---
---Values are strings, finite numbers, booleans, or arrays of these.
---
---`url.build_query{name = value, …}`
---@param options any
---@return any
function url.build_query(options) end

---A random UUID.
---
---`uuid.v4()`
---@return any
function uuid.v4() end

---The time now, with fractions of a second.
---
---`time.now()`
---@return any
function time.now() end

---The time as text, in UTC.
---
---`time.format(seconds [, "%Y-%m-%dT%H:%M:%SZ"])`
---@param seconds any
---@param name? any
---@return any
function time.format(seconds, name) end

---The time of a text like `2026-11-20T12:00:00Z`, in seconds.
---
---`time.parse(iso8601)`
---@param iso8601 any
---@return any
function time.parse(iso8601) end

---A later time, or an earlier one with negative amounts. Years and months are added first, at the same time of day; a day beyond the end of the month becomes its last day. The rest is exact time: a day is 86,400 seconds.
---
---Years and months must be whole numbers.
---
---`time.add(seconds, {years, months, weeks, days, hours, minutes, seconds})`
---@param seconds any
---@param options any
---@return any
function time.add(seconds, options) end

---The local time in a zone of the IANA database: `{year, month, day, hour, min, sec, wday, yday, isdst, offset, abbreviation, iso}`. `wday` is 1 on Sunday, `offset` is in seconds east of UTC; to format local time, add it.
---
---Names are case-sensitive. The zones are those installed on the server, read when its sandbox starts.
---
---`time.in_zone(seconds, "Europe/Berlin")`
---@param seconds any
---@param name any
---@return any
function time.in_zone(seconds, name) end

---What a library of the organisation returns. It runs at the first `require` of a run; later ones get the same value.
---
---Write the name out, since it is looked up when the script is saved: a name made at run time raises an error. A source has at most 256 KiB and 100 libraries, with all that its libraries require.
---
---`require("name")`
---@param name any
---@return any
function require(name) end
