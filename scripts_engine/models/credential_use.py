from django.db import models

from scripts_engine.models.hook import Hook


class CredentialUse(models.Model):
    """The evidence that a hook's call token or signing secret is still in use.

    Counted for signing secrets, and for both call tokens while a rotation overlaps.
    """

    hook = models.ForeignKey(
        Hook, on_delete=models.CASCADE, related_name="credential_uses", db_index=False
    )
    credential = models.CharField(
        max_length=64, help_text="The digest of a call token, or the id of a signing secret."
    )
    last_used_at = models.DateTimeField(help_text="When it was last used.")
    last_used_from = models.GenericIPAddressField(null=True, help_text="The last caller's address.")
    count = models.PositiveBigIntegerField(help_text="How often it was used.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["hook", "credential"], name="one_use_per_credential")
        ]

    def __str__(self) -> str:
        return f"Use of a credential of {self.hook_id}"
