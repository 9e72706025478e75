"""One-line examples for the reference panel beside the editor."""

from scripts_engine.admin.scripts.lua_reference import completions

# By name of an entry.
EXAMPLES = {
    "params.get": 'local order = FromJson(params.get("body"))',
    "params.header": 'local shop = params.header("X-Shop") or "unknown"',
    "params.query": 'local page = tonumber(params.query("page") or "1")',
    "FromJson": "local order = FromJson('{\"id\": 7}')",
    "ToJson": "local text = ToJson({id = 7}, {pretty = true})",
    "null": "return {comment = null}",
    "array": "return {items = array{}}",
    "object": "return {prices = object{}}",
    "Reply": 'return Reply{status = 201, headers = {["X-Order"] = "7"}, body = {id = 7}}',
    "print": 'print("order", 7)',
    "log.debug": 'log.debug("price", 4.5)',
    "log.info": 'log.info("order", 7)',
    "log.warn": 'log.warn("stock is low:", 2)',
    "log.error": 'log.error("no such order")',
    "http.get": 'local ok, answer = pcall(http.get, "https://shop.example/stock")',
    "http.post": 'local ok, answer = pcall(http.post, "https://shop.example/stock", "tea=1")',
    "http.request": (
        'local ok, answer = pcall(http.request, {method = "PUT", '
        'url = "https://shop.example/stock", json = {tea = 1}, timeout = 2})'
    ),
    "store.get": 'local stock = store.get("stock") or 0',
    "store.set": 'store.set("seen:7", true, 3600)  -- for an hour',
    "store.delete": 'store.delete("stock")',
    "store.increment": 'local number = store.increment("orders")',
    "secrets.get": 'local key = secrets.get("SHOP_KEY")',
    "crypto.sha256": 'local digest = crypto.sha256(params.get("body"))',
    "crypto.hmac_sha256": 'local signature = crypto.hmac_sha256("key", params.get("body"))',
    "crypto.hmac_sha1": 'local signature = crypto.hmac_sha1("key", params.get("body"))',
    "crypto.equals": 'local ok = crypto.equals("signature", params.header("X-Signature") or "")',
    "crypto.random_hex": "local id = crypto.random_hex(16)",
    "base64.encode": 'local text = base64.encode("tea")',
    "base64.decode": 'local bytes = base64.decode("dGVh")',
    "base64.urlencode": 'local text = base64.urlencode("tea")',
    "base64.urldecode": 'local bytes = base64.urldecode("dGVh")',
    "hex.encode": 'local text = hex.encode("tea")',
    "hex.decode": 'local bytes = hex.decode("746561")',
    "url.encode": 'local query = "q=" .. url.encode("green tea")',
    "url.decode": 'local text = url.decode("green%20tea")',
    "url.parse_query": 'local form = url.parse_query(params.get("body"))',
    "time.now": "local started = time.now()",
    "time.format": 'local day = time.format(time.now(), "%Y-%m-%d")',
    "time.parse": 'local seconds = time.parse("2026-11-20T12:00:00Z")',
    "uuid.v4": "local id = uuid.v4()",
    "params.json": "local order = params.json()",
    "params.form": "local name = params.form().name",
    "inspect": "log.info(inspect({tea = 1}))",
    "http.head": 'local ok, answer = pcall(http.head, "https://shop.example/stock")',
    "http.delete": 'local ok, answer = pcall(http.delete, "https://shop.example/stock/7")',
    "http.put": 'local ok, answer = pcall(http.put, "https://shop.example/stock", "tea=1")',
    "http.patch": 'local ok, answer = pcall(http.patch, "https://shop.example/stock", "tea=2")',
    "store.set_if_absent": 'local is_new = store.set_if_absent("seen:7", true, {ttl = 3600})',
    "store.list": 'local keys = store.list("seen:", 100)',
    "crypto.md5": 'local digest = crypto.md5(params.get("body"))',
    "crypto.sha1": 'local digest = crypto.sha1(params.get("body"))',
    "crypto.sha512": 'local digest = crypto.sha512(params.get("body"))',
    "crypto.hmac_sha512": 'local signature = crypto.hmac_sha512("key", params.get("body"))',
    "url.parse": 'local host = url.parse("https://shop.example/stock").host',
    "url.build_query": 'local query = url.build_query{q = "green tea"}',
    "html.escape": 'return "<p>" .. html.escape("5 < 7") .. "</p>"',
    "string.split": 'local first = string.split("tea,milk", ",")[1]',
    "string.trim": 'local name = string.trim("  tea ")',
    "time.add": "local tomorrow = time.add(time.now(), {days = 1})",
    "time.in_zone": 'local hour = time.in_zone(time.now(), "Europe/Berlin").hour',
}


def reference() -> list[dict[str, str]]:
    """The editor's completions, each with its example."""
    return [entry | {"example": EXAMPLES.get(entry["name"], "")} for entry in completions()]
