"""The organisation that a person looks at: lists and home then show its rows alone.

Kept in the session of the admin. It narrows what is shown and gives nobody anything: it counts only
within the person's reach, and pages of single rows, forms and permissions are as before.
"""

from typing import cast
from uuid import UUID

from django.http import HttpRequest

from accounts.backends import read_once
from accounts.models import Organisation, User
from core.database.ids import parse_uuid

_KEY = "organisation_in_view"
_READ = "_organisation_in_view"
_HOME = "index"
_LISTS = "_changelist"


def look_at(request: HttpRequest, organisation: Organisation | None) -> None:
    """Shows that organisation alone from now on; ``None`` shows all within reach."""
    if organisation is None:
        request.session.pop(_KEY, None)
    else:
        request.session[_KEY] = str(organisation.pk)


def organisation_in_view(request: HttpRequest) -> Organisation | None:
    """The organisation that the person has chosen, while it exists within reach.

    Read once per request, and not at all for those who have chosen none.
    """
    if not hasattr(request, _READ):
        setattr(request, _READ, _read(request))
    return cast("Organisation | None", getattr(request, _READ))


def id_in_lists(request: HttpRequest) -> UUID | None:
    """The id of the organisation in view, on pages that it narrows."""
    match = request.resolver_match
    name = (match and match.url_name) or ""
    if name != _HOME and not name.endswith(_LISTS):
        return None
    organisation = organisation_in_view(request)
    return None if organisation is None else organisation.pk


def _read(request: HttpRequest) -> Organisation | None:
    chosen, user = parse_uuid(str(request.session.get(_KEY, ""))), request.user
    if chosen is None or not isinstance(user, User):
        return None
    if not user.is_superuser and chosen not in read_once(user):
        return None
    return Organisation.objects.filter(pk=chosen).first()
