from django.db import transaction

from accounts.audit import record
from accounts.flows.change_profile import LOGIN_FIELDS, PROFILE_FIELDS, change_profile, held
from accounts.flows.own_user import require_home, require_sole_home
from accounts.models import AuthEventKind, Membership, Organisation, User
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin


@transaction.atomic
def update_user(
    organisation: Organisation,
    user: User,
    *,
    role: str | None = None,
    origin: Origin = NOWHERE,
    **profile: object,
) -> User:
    """Changes the given ones of ``email``, ``name``, ``phone``, ``is_active`` and the role.

    The role is the organisation's own matter. Only home may change the name and the activity, and
    e-mail and phone only while no other organisation has the user as a member
    (``ForbiddenError``). Raises ``ValidationError`` by field, and ``NotFoundError`` when the role
    is that of a user who is a member no more.
    """
    user = held(user)
    if role is not None:
        _change_role(organisation, user, role)
    if profile:
        require = require_sole_home if LOGIN_FIELDS & profile.keys() else require_home
        require(organisation, user)
        change_profile(user, **{field: profile[field] for field in PROFILE_FIELDS & profile.keys()})
    changed = ", ".join(sorted({*profile, *(["role"] if role is not None else [])}))
    if changed:
        record(
            AuthEventKind.USER_CHANGED,
            origin,
            user=user,
            organisation=organisation,
            reason=changed,
        )
    return user


def _change_role(organisation: Organisation, user: User, role: str) -> None:
    memberships = Membership.objects.filter(organisation=organisation, user=user)
    if not memberships.update(role=role):
        raise NotFoundError("This user is a member no more.")
