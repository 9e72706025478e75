"""What a script asks of the server: http, store, secrets, and the queue."""

from scripts_engine.lua_reference.entry import Entry, Section

_ANSWER = "Returns `{status, headers, body}`."
_LIMITS = "Public addresses only; 20 calls per run. A call that fails raises a string."

HTTP = Section(
    "http",
    (
        Entry(
            "http.get",
            "http.get(url [, headers])",
            f"A GET request. {_ANSWER}",
            example='local ok, answer = pcall(http.get, "https://shop.example/stock")',
            limits=_LIMITS,
        ),
        Entry(
            "http.head",
            "http.head(url [, headers])",
            "Like `http.get`, for the status and headers alone.",
            example='local ok, answer = pcall(http.head, "https://shop.example/stock")',
        ),
        Entry(
            "http.delete",
            "http.delete(url [, headers])",
            "Like `http.get`, with DELETE.",
            example='local ok, answer = pcall(http.delete, "https://shop.example/stock/7")',
        ),
        Entry(
            "http.post",
            "http.post(url [, body [, headers]])",
            f"A POST request; the body is a string. {_ANSWER}",
            example='local ok, answer = pcall(http.post, "https://shop.example/stock", "tea=1")',
            limits=_LIMITS,
        ),
        Entry(
            "http.put",
            "http.put(url [, body [, headers]])",
            "Like `http.post`, with PUT.",
            example='local ok, answer = pcall(http.put, "https://shop.example/stock", "tea=1")',
        ),
        Entry(
            "http.patch",
            "http.patch(url [, body [, headers]])",
            "Like `http.post`, with PATCH.",
            example='local ok, answer = pcall(http.patch, "https://shop.example/stock", "tea=2")',
        ),
        Entry(
            "http.request",
            "http.request{url, method, headers, body, json, timeout}",
            "A request with any of these methods, or OPTIONS; `json` is a value in place of a "
            f"body. {_ANSWER}",
            example=(
                'local ok, answer = pcall(http.request, {method = "PUT", '
                'url = "https://shop.example/stock", json = {tea = 1}, timeout = 2})'
            ),
            limits=f"`timeout` is in seconds, at most 5. {_LIMITS}",
            insert='http.request{method = "POST", url = "", json = }',
        ),
    ),
)

STORE = Section(
    "store",
    (
        Entry(
            "store.get",
            "store.get(key)",
            "The value stored under the key, or nil.",
            example='local stock = store.get("stock") or 0',
        ),
        Entry(
            "store.set",
            "store.set(key, value [, ttl_seconds])",
            "Replaces the value, which all scripts of the organisation share between runs. Without "
            "a time to live, it is kept until it is deleted.",
            example='store.set("seen:7", true, 3600)  -- for an hour',
            limits=(
                "Any value that `ToJson` accepts, at most 64 KiB; 10,000 keys of an organisation. "
                "A key is a string of 1 to 256 bytes."
            ),
        ),
        Entry(
            "store.set_if_absent",
            "store.set_if_absent(key, value [, {ttl = seconds}])",
            "Sets the value only if the key has none, or one that has expired; returns whether it "
            "was set. Atomic: of any number of concurrent runs, exactly one gets `true`.",
            example='local is_new = store.set_if_absent("seen:7", true, {ttl = 3600})',
            insert="store.set_if_absent(key, true, {ttl = 3600})",
        ),
        Entry(
            "store.increment",
            "store.increment(key [, by])",
            "Adds 1, or `by`, and returns the new number. Atomic.",
            example='local number = store.increment("orders")',
        ),
        Entry(
            "store.delete",
            "store.delete(key)",
            "Deletes the value.",
            example='store.delete("stock")',
        ),
        Entry(
            "store.list",
            "store.list(prefix, limit)",
            "The first keys that begin with the prefix, in byte order, without those that have "
            "expired. In the prefix, every character is literal.",
            example='local keys = store.list("seen:", 100)',
            limits="The limit is 1 to 1,000.",
        ),
    ),
)

SECRETS = Section(
    "secrets",
    (
        Entry(
            "secrets.get",
            "secrets.get(name)",
            "A value set by an administrator of the organisation, or nil.",
            example='local key = secrets.get("SHOP_KEY")',
            limits="A run can get at most 50 different secrets.",
        ),
    ),
)

QUEUE = Section(
    "queue",
    (
        Entry(
            "queue.push",
            "queue.push(script, payload [, {delay = seconds, key = …, attempts = n}])",
            "Runs a script of the organisation later, given by its name or id, with this payload. "
            "Returns the id of its run, and whether the run is new: with a `key`, the run that was "
            "pushed for the script with it in the last 24 hours is found, and nothing is pushed. A "
            "run in progress that pushes with the key is waited for. "
            "Pushes take effect only if the run that makes them succeeds.",
            example='local run_id, is_new = queue.push("ship", {order = 7}, {key = "order:7"})',
            limits=(
                "The payload is a string or any value that `ToJson` accepts, at most 256 KiB; nil "
                "is an empty payload. The delay is at most 30 days, a key 1 to 200 bytes of text, "
                "attempts 1 to 20. 20 new pushes in a run, and 20 runs that push one another. A "
                "push that is refused raises a string, also if the organisation's queue is full."
            ),
            insert='queue.push("", )',
            words="enqueue later background job delay asynchronous",
        ),
        Entry(
            "Retry",
            "Retry{after = seconds, reason = …}",
            "Return it if the work cannot be done now. The queue tries it again after this number "
            "of seconds, or after its usual delay. A caller that waits for the reply gets 503 with "
            "`Retry-After`.",
            example=(
                'if params.header("X-Shop") == "closed" then '
                'return Retry{after = 60, reason = "the shop is closed"} end'
            ),
            limits=(
                "Both fields are optional. `after` is 0 to 86,400; the reason is for "
                "administrators, and cut to 4 KiB. The run has failed: it counts as an attempt."
            ),
            insert='Retry{after = 60, reason = ""}',
            words="again attempt later backoff 503",
        ),
        Entry(
            "Fail",
            "Fail{reason = …}",
            "Return it if another attempt would be in vain: the queue makes none. A caller that "
            "waits for the reply gets 500.",
            example='if not params.json().id then return Fail{reason = "an order without id"} end',
            limits="The reason is optional, for administrators, and cut to 4 KiB.",
            insert='Fail{reason = ""}',
            words="error dead letter give up stop attempts 500",
        ),
    ),
)
