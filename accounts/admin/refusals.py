"""Refusals by a flow while a form is saved: nothing is saved, and the page shows the reason."""

import re
from collections.abc import Sequence
from typing import Any, cast

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.admin.reach import is_superuser
from accounts.models import Organisation
from accounts.rate_limits.addresses import REVEALING_CODES, claim_answers
from accounts.rate_limits.limiter import Claim
from core.admin.too_many_attempts import too_many_attempts
from core.errors import ForbiddenError, NotFoundError, RateLimitedError
from core.http.origin import origin_of

_TOO_MANY_ADDRESSES = "Too many e-mail addresses were tried that are unknown or already taken."
_TYPED_MEMBER = re.compile(r"memberships-\d+-email")


class RefusalsAsMessages:
    """Mixin for model admins that save through flows.

    Forms validate first; a flow may still refuse because of a concurrent change or a rate limit.
    The number of addresses per hour that a form confirms as taken or unknown is limited, except
    for superusers.
    """

    def organisation_that_asks(
        self, request: HttpRequest, object_id: str | None
    ) -> Organisation | None:
        """The organisation whose limit of address answers the form uses; ``None`` for no limit."""
        raise NotImplementedError

    def _claim_answers(self, request: HttpRequest, object_id: str | None) -> Claim:
        """Counts the address answers a form may give, outside the transaction that saves it."""
        if request.method != "POST" or is_superuser(request):
            return Claim(())
        number = sum(
            bool(value) and (name == "email" or _TYPED_MEMBER.fullmatch(name) is not None)
            for name, value in request.POST.items()
        )
        organisation = self.organisation_that_asks(request, object_id) if number else None
        if organisation is None:
            return Claim(())
        return claim_answers(organisation, number, origin_of(request))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        try:
            claimed = self._claim_answers(request, object_id)
        except RateLimitedError as limited:
            return too_many_attempts(request, limited, _TOO_MANY_ADDRESSES)
        try:
            response: HttpResponse = super().changeform_view(  # type: ignore[misc]
                request, object_id, form_url, extra_context
            )
            claimed.without(_answers_of(response)).give_back()
        except (ForbiddenError, NotFoundError) as refusal:
            reason = str(refusal)
        except RateLimitedError as limited:
            minutes = -(-limited.retry_after_seconds // 60)
            reason = f"Too many invitations or changes. Try again in {minutes} min."
        else:
            return response
        messages.error(request, f"Nothing was saved. {reason}")
        return redirect(request.get_full_path())


def _answers_of(response: HttpResponse) -> int:
    """How many addresses a page that was not saved confirms as taken, unknown or accepted."""
    context = getattr(response, "context_data", None) or {}
    if "adminform" not in context:
        return 0
    inlines = cast("Any", context.get("inline_admin_formsets", ()))
    forms = [context["adminform"].form, *(form for each in inlines for form in each.formset.forms)]
    typed = [form for form in forms if "email" in form.changed_data]
    return sum(_is_revealing(form.errors.as_data().get("email", ())) for form in typed)


def _is_revealing(errors: Sequence[ValidationError]) -> bool:
    """Whether the errors of an e-mail field reveal whether the address has a user."""
    return not errors or any(error.code in REVEALING_CODES for error in errors)
