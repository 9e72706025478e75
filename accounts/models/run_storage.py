from django.db import models

from accounts.models.organisation import Organisation


class RunStorage(models.Model):
    """The size of an organisation's run payloads, limited by ``Organisation.run_bytes_limit``.

    Each process adds its share every few seconds, and upkeep recounts, because a killed process
    may not have added its last MiB.
    """

    organisation = models.OneToOneField(
        Organisation, primary_key=True, on_delete=models.CASCADE, related_name="run_storage"
    )
    bytes_used = models.BigIntegerField(default=0, help_text="Payloads, replies, headers and logs.")
    removed_before = models.DateTimeField(
        null=True, help_text="Runs that started earlier have lost their payload to the quota."
    )

    def __str__(self) -> str:
        return f"Run storage of {self.organisation_id}"
