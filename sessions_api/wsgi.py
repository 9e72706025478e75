"""The WSGI application of look-ups, ``GET /session``, which pass Django's handler by.

Its responses are those of ``SessionView``, byte for byte. Other requests are left to Django.
"""

from typing import Any

from core.http.origin import REQUEST_ID_HEADER, new_request_id
from core.http.slim_application import (
    Answer,
    BareRequest,
    SlimApplication,
    has_allowed_host,
    scheme_of,
    security_headers,
)
from core.logs.context import bind_request
from sessions_api.views import look_up

PATH = "/session"
_VIEW = "session"
_FRAMES = "X-Frame-Options"


class LookUps(SlimApplication):
    def __init__(self) -> None:
        super().__init__()
        self._added = {scheme: _added(scheme) for scheme in ("http", "https")}

    @staticmethod
    def take(environ: dict[str, Any]) -> bool:
        """Whether the request is a look-up, for a host that is served here."""
        is_look_up = environ["PATH_INFO"] == PATH and environ["REQUEST_METHOD"] == "GET"
        return is_look_up and has_allowed_host(environ)

    def _answer(self, environ: dict[str, Any]) -> Answer:
        request = _LookUp(environ)
        bind_request(request.request_id)
        status, headers, body = look_up(request)
        headers |= self._added[scheme_of(environ)]
        headers["Content-Length"] = str(len(body))
        headers[REQUEST_ID_HEADER] = request.request_id
        return Answer(_VIEW, status, [*headers.items()], body)


class _LookUp(BareRequest):
    path = path_info = PATH

    def __init__(self, environ: dict[str, Any]) -> None:
        super().__init__(environ)
        self.request_id = new_request_id()


def _added(scheme: str) -> dict[str, str]:
    """The headers that Django's middleware adds, in its order."""
    headers = security_headers(scheme)
    return {_FRAMES: headers[_FRAMES], "Content-Length": "", **headers}
