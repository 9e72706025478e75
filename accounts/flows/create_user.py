from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.audit import record
from accounts.models import AuthEventKind, Membership, Organisation, Role, User
from core.errors import AddressTakenError
from core.http.origin import NOWHERE, Origin


@transaction.atomic
def create_user(
    organisation: Organisation,
    *,
    email: str,
    name: str = "",
    phone: str = "",
    role: str = "",
    origin: Origin = NOWHERE,
) -> User:
    """A new user, member of the organisation.

    Raises ``ValidationError`` by field, and ``AddressTakenError`` when the address belongs to a
    user who is not this organisation's: a tenant may add that user, not define them.
    """
    # First: what is wrong beside the address must not tell of it, and nothing be made by asking.
    User(email=email, name=name, phone=phone).clean_fields(exclude=["password"])
    known = User.objects.find_by_email(email)
    if known is not None:
        if known.memberships.filter(organisation=organisation).exists():
            raise ValidationError(
                {"email": ValidationError("This user is a member already.", code="member")}
            )
        raise AddressTakenError("A user with this e-mail exists elsewhere. Use addMember.")
    user = User.objects.create_user(email, name=name.strip(), phone=phone, home=organisation)
    Membership.objects.create(organisation=organisation, user=user, role=role or Role.MEMBER)
    record(AuthEventKind.USER_CREATED, origin, user=user, organisation=organisation)
    return user
