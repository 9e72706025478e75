"""Mails to the administrators of an organisation, within limits."""

from uuid import UUID

from django.db.models import QuerySet
from limits import RateLimitItem

from accounts.messages.quotas import count_mail_of
from accounts.models import Role, User
from accounts.rate_limits.limiter import hit
from core.errors import RateLimitedError


def administrators_of(organisation_id: UUID) -> QuerySet[User]:
    return User.objects.filter(
        is_active=True,
        memberships__organisation=organisation_id,
        memberships__role=Role.ADMINISTRATOR,
    )


def may_mail(administrator: User, organisation_id: UUID, limit: RateLimitItem, action: str) -> bool:
    """Counts one mail, and returns whether it fits the limits: mailboxes must not be flooded."""
    try:
        hit([limit], action, administrator.email)
        count_mail_of(organisation_id)
    except RateLimitedError:
        return False
    return True
