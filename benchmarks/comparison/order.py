"""The task of every hook: adding up an order of 300 bytes."""

import hashlib
import hmac

from benchmarks.comparison.requests import Request

TOKEN = "4f0c1e57-2b6d-4c83-9a41-d07b6e915c2f"
WRONG_TOKEN = "00000000-0000-4000-8000-000000000000"
SIGNING_SECRET = "0123456789abcdef"

ORDER = {
    "id": "2026-0417",
    "items": [
        {"sku": "tea-assam", "qty": 2, "price": 4.5},
        {"sku": "cup-blue", "qty": 6, "price": 3.25},
        {"sku": "kettle", "qty": 1, "price": 42.0},
    ],
    "customer": {"name": "Grace Hopper", "email": "grace@example.com", "country": "US"},
    "comment": "Ring at the back door, please; the front one is stuck for days.",
}
REPLY = {"id": "2026-0417", "total": 70.5}

SOURCE = """\
local order = FromJson(params.get("body"))
local total = 0
for _, item in ipairs(order.items) do
  total = total + item.qty * item.price
end
return {id = order.id, total = total}
"""


def order_to(url: str) -> Request:
    return Request.posting(url, ORDER)


def signed_order_to(url: str) -> Request:
    """The same call, signed as GitHub does."""
    digest = hmac.new(SIGNING_SECRET.encode(), order_to(url).body, hashlib.sha256).hexdigest()
    return Request.posting(url, ORDER, **{"X-Hub-Signature-256": f"sha256={digest}"})


def is_right(reply: object) -> bool:
    return reply == REPLY
