"""The same as a bare WSGI callable."""

import json
from collections.abc import Iterable
from hmac import compare_digest
from typing import TYPE_CHECKING

from benchmarks.comparison.order import TOKEN

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

PATH = f"/hook/{TOKEN}".encode("latin-1")


def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    if not compare_digest(environ["PATH_INFO"].encode("latin-1"), PATH):
        start_response("403 Forbidden", [("Content-Length", "0")])
        return []
    order = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    total = sum(item["qty"] * item["price"] for item in order["items"])
    body = json.dumps({"id": order["id"], "total": total}).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response("200 OK", headers)
    return [body]
