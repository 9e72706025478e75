"""Which request an event belongs to."""

from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware
from structlog.contextvars import bind_contextvars, clear_contextvars

from core.http.request_id import request_id_of


class RequestContext(RequestMiddleware):
    """django-structlog's middleware without what every webhook call would have to pay for.

    There is no line when a request begins, and when it ends the access log has the one. An
    exception that no view caught is written down as the library does it.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Cleared here and not at the end: the access line is written after the reply is sent.
        clear_contextvars()
        bind_contextvars(request_id=request_id_of(request))
        response: HttpResponse = self.get_response(request)  # type: ignore[assignment]
        self.bind_user_id(request)
        return response

    @staticmethod
    def bind_user_id(request: HttpRequest) -> None:
        """Who is logged in, if the view wanted to know: nobody is looked up for the log.

        A look-up could fail too, in the middle of an answer to just such a failure.
        """
        user = getattr(request, "_cached_user", None)
        if user is not None and user.pk:
            bind_contextvars(user_id=user.pk)

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        """Without the query, which may hold secrets of others."""
        return f"{request.method} {request.path}"
