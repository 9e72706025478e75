import uuid
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models

from accounts.addresses import (
    MAX_LENGTH,
    canonical_email,
    canonical_phone,
    validate_phone,
    validate_typed_email,
)
from accounts.models.organisation import Activation, Organisation
from core.plain_text import validate_plain_text


class UserQuerySet(models.QuerySet["User"]):
    def of_organisation(self, organisation: Organisation) -> "UserQuerySet":
        return self.filter(memberships__organisation=organisation)

    def belonging_to(self, *organisation_ids: uuid.UUID) -> "UserQuerySet":
        """Users for whom ``User.belongs_to`` holds for any of the organisations."""
        at_home = _memberships_of_each_user().filter(organisation=models.OuterRef("home"))
        return self.filter(
            models.Exists(at_home), is_superuser=False, home__in=list(organisation_ids)
        )

    def belonging_only_to(self, *organisation_ids: uuid.UUID) -> "UserQuerySet":
        """Users for whom ``User.belongs_only_to`` holds for any of the organisations."""
        elsewhere = _memberships_of_each_user().exclude(organisation=models.OuterRef("home"))
        return self.belonging_to(*organisation_ids).filter(~models.Exists(elsewhere))

    def with_login_changed_by(self, *organisation_ids: uuid.UUID) -> "UserQuerySet":
        """Users for whom ``User.has_login_changed_by`` holds for any of the organisations."""
        return self.belonging_only_to(*organisation_ids).filter(is_staff=False)


def _memberships_of_each_user() -> models.QuerySet[Any]:
    memberships: models.QuerySet[Any] = User.organisations.through._default_manager.all()
    return memberships.filter(user=models.OuterRef("pk"))


class UserManager(BaseUserManager["User"].from_queryset(UserQuerySet)):  # type: ignore[misc]
    """Finds users by their canonical e-mail."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user: User = self.model(email=email, **fields)
        user.set_password(password)
        user.full_clean(exclude=["password"])
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> "User":
        user: User = self.get(email=canonical_email(username or ""))
        return user

    def find_by_email(self, email: str) -> "User | None":
        return self.filter(email=canonical_email(email)).first()

    def find_active_by_email(self, email: str) -> "User | None":
        return self.filter(email=canonical_email(email), is_active=True).first()


class User(Activation, AbstractBaseUser, PermissionsMixin):
    """A person. Logs in by PIN; staff also log in to the admin, with a password.

    ``email`` is the login name in canonical form; ``delivery_email`` is the address as typed,
    because case folding may change where mail goes.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.CharField(
        "e-mail",
        max_length=MAX_LENGTH,
        unique=True,
        validators=[validate_typed_email],
        error_messages={"unique": "There is a user with this e-mail already."},
    )
    delivery_email = models.CharField(max_length=MAX_LENGTH, editable=False)
    name = models.CharField(
        max_length=200,
        blank=True,
        validators=[validate_plain_text],
        help_text="The user's name.",
    )
    phone = models.CharField(
        max_length=16,
        blank=True,
        validators=[validate_phone],
        help_text="Receives PIN codes by SMS. With country code, such as +491701234567.",
    )
    is_active = models.BooleanField(
        "active",
        default=True,
        help_text="When off, the user cannot log in and every session ends immediately.",
    )
    is_staff = models.BooleanField(
        "staff", default=False, help_text="Can log in to this admin, with a password."
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the user was created.")

    home = models.ForeignKey(
        Organisation,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The organisation that created the user, until the user leaves it.",
    )
    organisations = models.ManyToManyField(
        Organisation, through="accounts.Membership", related_name="users"
    )

    objects = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "delivery_email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        ordering = ["email"]

    def __str__(self) -> str:
        return self.email

    def clean_fields(self, exclude: Any = None) -> None:
        self.phone = canonical_phone(self.phone)
        super().clean_fields(exclude=exclude)

    def clean(self) -> None:
        self._adopt_email()

    def save(self, *args: Any, **kwargs: Any) -> None:
        self._adopt_email()
        super().save(*args, **kwargs)

    def _adopt_email(self) -> None:
        """Updates both forms of the address when a new one was set as ``email``."""
        if canonical_email(self.delivery_email) != self.email:
            self.delivery_email = self.email.strip()
            self.email = canonical_email(self.email)

    def get_full_name(self) -> str:
        return self.name or self.email

    def get_short_name(self) -> str:
        return self.get_full_name()

    def sole_organisation(self) -> Organisation | None:
        """The user's only organisation; ``None`` if there is none or more than one."""
        organisations = list(self.organisations.all()[:2])
        return organisations[0] if len(organisations) == 1 else None

    def is_without_active_organisation(self) -> bool:
        """Whether the user has organisations and all of them are inactive."""
        states = set(self.organisations.values_list("is_active", flat=True))
        return states == {False}

    @property
    def tenant_id(self) -> uuid.UUID | None:
        """The organisation that events about the user are recorded under: the user's home.

        ``None`` for a superuser, who belongs to no tenant, and for a user who has left home.
        """
        return None if self.is_superuser else self.home_id

    def belongs_to(self, organisation: Organisation) -> bool:
        """Whether the organisation is the user's home.

        Home sees the profile, devices and sessions, ends them, and deactivates or unlocks the
        user. Any other organisation sees only the e-mail and the role that it gave the user.
        """
        return self.tenant_id == organisation.pk and organisation.pk in self._organisation_ids()

    def belongs_only_to(self, organisation: Organisation) -> bool:
        """Whether the organisation is the user's home, and the user's only organisation.

        Only then may home reset the second factor, or change what the user logs in with: these
        give control of the account in every organisation.
        """
        return self.belongs_to(organisation) and self._organisation_ids() == {organisation.pk}

    def has_login_changed_by(self, organisation: Organisation) -> bool:
        """Whether the organisation may change what the user logs in with: e-mail, phone, password.

        Home may, while it is the user's only organisation and the user has no access to the admin:
        a changed address receives the next link for a new password, which lets its reader act in
        the name of that administrator.
        """
        return self.belongs_only_to(organisation) and not self.is_staff

    def email_known_to(self, organisation_id: uuid.UUID) -> str | None:
        """The e-mail, if the user is a member of the organisation or a superuser.

        An organisation does not learn the present address of a user who has left it.
        """
        is_known = self.is_superuser or organisation_id in self._organisation_ids()
        return self.email if is_known else None

    def _organisation_ids(self) -> set[uuid.UUID]:
        return {membership.organisation_id for membership in self.memberships.all()}
