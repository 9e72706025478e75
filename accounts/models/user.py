import uuid
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models

from accounts.email_address import MAX_LENGTH, canonical_email, validate_typed_email
from accounts.models.activation import Activation
from accounts.models.organisation import Organisation
from accounts.phone_number import canonical_phone, validate_phone
from accounts.plain_text import validate_plain_text


class UserQuerySet(models.QuerySet["User"]):
    def of_organisation(self, organisation: Organisation) -> "UserQuerySet":
        return self.filter(memberships__organisation=organisation)

    def belonging_only_to(self, organisation: Organisation) -> "UserQuerySet":
        """The set form of ``User.belongs_only_to``."""
        elsewhere = User.organisations.through._default_manager.filter(
            user=models.OuterRef("pk")
        ).exclude(organisation=organisation)
        return self.of_organisation(organisation).filter(
            ~models.Exists(elsewhere), is_superuser=False, home=organisation
        )

    def sole_organisation_ids(self) -> dict[uuid.UUID, uuid.UUID]:
        """The set form of ``User.sole_organisation``, by user; without who has none or several."""
        memberships = User.organisations.through._default_manager.filter(user__in=self)
        found: dict[uuid.UUID, list[uuid.UUID]] = {}
        for user_id, organisation_id in memberships.values_list("user", "organisation"):
            found.setdefault(user_id, []).append(organisation_id)
        return {user_id: ids[0] for user_id, ids in found.items() if len(ids) == 1}


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
    """A person. Logs in by PIN; staff also enter the admin, with a password.

    ``email`` is the canonical form and the login name; ``delivery_email`` is the address as it
    was typed, because folding may change where mail goes.
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
        help_text="What to call the user.",
    )
    phone = models.CharField(
        max_length=16,
        blank=True,
        validators=[validate_phone],
        help_text="With country code, like +491701234567. PIN codes by SMS go there.",
    )
    is_active = models.BooleanField(
        "active",
        default=True,
        help_text="An inactive user cannot log in, and every session of theirs ends at once.",
    )
    is_staff = models.BooleanField(
        "staff", default=False, help_text="May enter this admin, with a password."
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the user was made.")

    home = models.ForeignKey(
        Organisation,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The organisation that made the user: the only one that may change the profile.",
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
        """Keeps both forms of the address in step when a new one was typed into ``email``."""
        if canonical_email(self.delivery_email) != self.email:
            self.delivery_email = self.email.strip()
            self.email = canonical_email(self.email)

    def get_full_name(self) -> str:
        return self.name or self.email

    def get_short_name(self) -> str:
        return self.get_full_name()

    def sole_organisation(self) -> Organisation | None:
        """The only organisation of the user; ``None`` where there is none or are several."""
        organisations = list(self.organisations.all()[:2])
        return organisations[0] if len(organisations) == 1 else None

    def is_without_active_organisation(self) -> bool:
        """Whether every organisation of the user is switched off, and there is one."""
        states = set(self.organisations.values_list("is_active", flat=True))
        return states == {False}

    def belongs_only_to(self, organisation: Organisation) -> bool:
        """Whether the organisation may speak for the user: made there, and nobody else's member.

        Who was left by their organisation belongs to nobody who adds them. A superuser belongs to
        no tenant.
        """
        if self.is_superuser or self.home_id != organisation.pk:
            return False
        return {membership.organisation_id for membership in self.memberships.all()} == {
            organisation.pk
        }
