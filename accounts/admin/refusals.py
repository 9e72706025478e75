"""What a flow refuses while a page is saved: the page again, with the reason, and nothing saved."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.errors import ForbiddenError, NotFoundError, RateLimitedError


class RefusalsAsMessages:
    """Mixin for model admins that save through flows.

    Forms check first; this is for what became true in between, and for limits.
    """

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        try:
            response: HttpResponse = super().changeform_view(  # type: ignore[misc]
                request, object_id, form_url, extra_context
            )
        except (ForbiddenError, NotFoundError) as refusal:
            reason = str(refusal)
        except RateLimitedError as limited:
            minutes = -(-limited.retry_after_seconds // 60)
            reason = f"Too many invitations. Wait {minutes} min for the next."
        else:
            return response
        messages.error(request, f"Nothing was saved. {reason}")
        return redirect(request.get_full_path())
