from django.db import transaction

from accounts.audit import record
from accounts.flows.change_profile import PROFILE_FIELDS, change_profile, held
from accounts.flows.own_user import require_own_user
from accounts.models import AuthEventKind, Membership, Organisation, User
from config.http.origin import NOWHERE, Origin


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

    The role is the organisation's own matter; a profile may be changed only of a user who is a
    member of no other organisation (``ForbiddenError``). Raises ``ValidationError`` by field.
    """
    if role is not None:
        Membership.objects.filter(organisation=organisation, user=user).update(role=role)
    if profile:
        user = held(user)
        require_own_user(organisation, user)
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
