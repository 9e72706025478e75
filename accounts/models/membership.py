"""Who belongs to an organisation: members, and users that it has invited."""

import uuid

from django.db import models
from django.utils import timezone

from accounts.addresses import MAX_LENGTH
from accounts.models.organisation import Organisation
from accounts.models.user import User
from accounts.scopes import Role, Scopes, scopes_of_role

__all__ = ["Membership", "Role"]


class Membership(models.Model):
    """A user's membership in an organisation, with a role."""

    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="memberships"
    )
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(
        max_length=20,
        choices=Role.choices,
        default=Role.MEMBER,
        help_text="Administrators who are also staff can manage the organisation in this admin.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["organisation__name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "user"], name="one_membership_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.organisation}"

    @property
    def scopes(self) -> Scopes:
        """What the role opens, for a user with access to the admin."""
        return scopes_of_role(self.role)


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self) -> "InvitationQuerySet":
        return self.filter(expires_at__gt=timezone.now())

    def expired(self) -> "InvitationQuerySet":
        return self.filter(expires_at__lte=timezone.now())

    def of_organisation(self, organisation: Organisation) -> "InvitationQuerySet":
        return self.open().filter(organisation=organisation)

    def answerable(self) -> "InvitationQuerySet":
        """Open invitations that the user may answer.

        Those of an inactive organisation wait until it is active. A superuser belongs to no
        organisation, so cannot answer invitations from before the promotion. The invitation is for
        the invited address: if home has changed it since, home could accept for the user.
        """
        return self.open().filter(
            email=models.F("user__email"),
            organisation__is_active=True,
            user__is_superuser=False,
        )


class Invitation(models.Model):
    """An organisation's offer of a membership to a user whose home is another organisation.

    A model of its own, so that no query for members finds an invited user. ``email`` is the invited
    address: the organisation does not learn of a later change.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="invitations"
    )
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="invitations")
    email = models.CharField("e-mail", max_length=MAX_LENGTH, help_text="The invited address.")
    role = models.CharField(
        max_length=20,
        choices=Role.choices,
        default=Role.MEMBER,
        help_text="The role in the organisation after acceptance.",
    )
    offers_admin_login = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether the user may set a password for the admin after acceptance.",
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the user was invited.")
    expires_at = models.DateTimeField(
        db_index=True, help_text="When the invitation expires unless it is accepted."
    )

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "user"], name="one_invitation_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return f"{self.email} at {self.organisation}"
