from django.db import models

from accounts.models.organisation import Organisation
from accounts.models.user import User


class Role(models.TextChoices):
    MEMBER = "member", "Member"
    ADMINISTRATOR = "administrator", "Administrator"


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
