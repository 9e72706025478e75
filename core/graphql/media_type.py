"""Negotiation of a reply's media type ("GraphQL over HTTP", Media Types)."""

import re

GRAPHQL_RESPONSE = "application/graphql-response+json"
JSON = "application/json"

_QUALITY = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;|$)")


def negotiate(accept: str | None) -> str | None:
    """Return ``GRAPHQL_RESPONSE`` or ``JSON``, or ``None`` if ``Accept`` allows neither.

    Only clients that name the newer type know its status codes, so wildcards and a missing header
    get ``JSON``. Parameters other than ``q`` (RFC 9110, 12.4.2) are ignored.
    """
    if not accept or not accept.strip():
        return JSON
    qualities = dict(_range_and_quality(part) for part in accept.lower().split(","))
    graphql_response = qualities.get(GRAPHQL_RESPONSE, 0.0)
    json = _quality(qualities, JSON)
    if graphql_response and graphql_response >= json:
        return GRAPHQL_RESPONSE
    if json:
        return JSON
    return GRAPHQL_RESPONSE if _quality(qualities, GRAPHQL_RESPONSE) else None


def _range_and_quality(part: str) -> tuple[str, float]:
    quality = _QUALITY.search(part)
    return part.partition(";")[0].strip(), float(quality[1]) if quality else 1.0


def _quality(qualities: dict[str, float], media_type: str) -> float:
    """The quality of the most specific range that matches the type."""
    for media_range in (media_type, "application/*", "*/*"):
        if media_range in qualities:
            return qualities[media_range]
    return 0.0
