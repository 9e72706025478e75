"""Cross-site request forgery, refused by Fetch metadata.

The algorithm of Go's ``http.CrossOriginProtection``: browsers say where a request comes from,
in ``Sec-Fetch-Site`` or at least in ``Origin``; a client that sends neither is no browser and
cannot be made to carry somebody else's cookie.
"""

from urllib.parse import urlsplit

from django.http import HttpRequest

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


def is_cross_origin(request: HttpRequest) -> bool:
    """Whether an unsafe request was made by another site's page."""
    if request.method in SAFE_METHODS:
        return False
    fetch_site = request.META.get("HTTP_SEC_FETCH_SITE")
    if fetch_site is not None:
        return fetch_site not in ("same-origin", "none")
    origin = request.META.get("HTTP_ORIGIN")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != request.get_host().lower()
    except ValueError:
        return True
