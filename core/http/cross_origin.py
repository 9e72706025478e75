"""Protection from cross-site request forgery by Fetch metadata.

This is the algorithm of Go's ``http.CrossOriginProtection``. Browsers send ``Sec-Fetch-Site`` or at
least ``Origin``; a client that sends neither is not a browser, so no other site can make it send
its user's cookie.
"""

from urllib.parse import urlsplit

from django.http import HttpRequest

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


def is_cross_origin(request: HttpRequest) -> bool:
    """Whether another site's page made this unsafe request."""
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
