from typing import Any

from rest_framework.negotiation import BaseContentNegotiation


class AlwaysJson(BaseContentNegotiation):
    """There is one representation: it is sent whatever ``Accept`` says (RFC 9110, 12.5.1)."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return None

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type
