"""Links in e-mails with which users set their password for the admin.

A link is signed, not stored. It ends after ``PASSWORD_LINK_LIFETIME``, and as soon as anything that
its signature covers changes: the password (so it works once), the e-mail, a login, a deactivation.
It belongs to one user, and to the organisation that gave the user a role in the admin, if one did:
setting the password then gives the login to the admin. Otherwise it is for users who have that
login.
"""

import re
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.urls import reverse

from accounts.models import Organisation, Role, User

# Logs redact words with such a prefix.
_PREFIX = "mhl_"
_NONE = UUID(int=0)
_LINK = re.compile(r"mhl_([0-9a-f]{32})([0-9a-f]{32})([0-9a-z]{1,13})T([0-9a-f]{32})", re.ASCII)


class LinkSubject(NamedTuple):
    """Whose password a link sets, and the organisation that gave the user a role."""

    user: User
    organisation: Organisation | None


class _Tokens(PasswordResetTokenGenerator):
    key_salt = "moonhook.password-link"

    def __init__(self, organisation: Organisation | None) -> None:
        super().__init__()
        self._organisation = organisation

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        django_own = super()._make_hash_value(user, timestamp)
        states = [user.email, user.is_staff, user.is_superuser, user.is_active]
        states.append(user.sessions_valid_after)
        if self._organisation is not None:
            states += [self._organisation.pk, self._organisation.sessions_valid_after]
        return ":".join([django_own, *map(str, states)])


def make_link(user: User, organisation: Organisation | None = None) -> str:
    """The secret of a new link; rows must be as stored."""
    timestamp, signature = _Tokens(organisation).make_token(user).split("-")
    organisation_id = _NONE if organisation is None else organisation.pk
    return f"{_PREFIX}{user.pk.hex}{organisation_id.hex}{timestamp}T{signature}"


def address_of(link: str) -> str:
    """The URL of the page that the link opens.

    In the query, which Moonhook's log and that of the proxies leave out.
    """
    return f"{settings.PUBLIC_URL}{reverse('admin:password_link')}?link={link}"


def read_link(link: str) -> LinkSubject | None:
    """Whose link it is; ``None`` if it is not, or no longer, valid."""
    match = _LINK.fullmatch(link)
    if match is None:
        return None
    user_id, organisation_id = UUID(match[1]), UUID(match[2])
    user = User.objects.filter(pk=user_id).first()
    organisation = Organisation.objects.filter(pk=organisation_id).first()
    if user is None or (organisation is None and organisation_id != _NONE):
        return None
    if not may_set_password(user, organisation):
        return None
    token = f"{match[3]}-{match[4]}"
    return (
        LinkSubject(user, organisation) if _Tokens(organisation).check_token(user, token) else None
    )


def may_set_password(user: User, organisation: Organisation | None) -> bool:
    """Whether the user may get or use a link, for the organisation if there is one.

    Without one the user must have a login to the admin; with one the user must have accepted a role
    of it that opens something in the admin.
    """
    if not user.is_active:
        return False
    if organisation is None:
        return user.is_staff and not user.is_without_active_organisation()
    if user.is_superuser or not organisation.is_active:
        return False
    opening = [role for role in Role if role.scopes]
    return user.memberships.filter(role__in=opening, organisation=organisation).exists()
