import uuid

from django.core.validators import RegexValidator
from django.db import models

from accounts.models import Organisation


class SecretQuerySet(models.QuerySet["Secret"]):
    def of_organisation(self, organisation: Organisation | uuid.UUID) -> "SecretQuerySet":
        return self.filter(organisation=organisation)


class Secret(models.Model):
    """A secret that an organisation's scripts read by name.

    Its value is encrypted and never shown; it can only be replaced.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="secrets", db_index=False
    )
    name = models.CharField(
        max_length=100,
        validators=[
            RegexValidator(
                r"\A[A-Za-z_][A-Za-z0-9_.-]*\Z",
                "Use letters, digits, _, - and . and begin with a letter.",
            )
        ],
        help_text='The name in scripts: secrets.get("SHOP_KEY").',
    )
    ciphertext = models.BinaryField(editable=False)
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the secret was first set.")
    updated_at = models.DateTimeField(auto_now=True, help_text="When the secret was last set.")

    objects = SecretQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="one_secret_per_name_and_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name
