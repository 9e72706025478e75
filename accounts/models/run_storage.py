from django.db import models

from accounts.models.organisation import Organisation


class RunStorage(models.Model):
    """What the payloads of an organisation's runs take, against ``Organisation.run_bytes_limit``.

    Processes add what they have recorded from time to time, and upkeep counts again: the figure
    is some seconds old, and a process that was killed may have kept up to a MiB to itself.
    """

    organisation = models.OneToOneField(
        Organisation, primary_key=True, on_delete=models.CASCADE, related_name="run_storage"
    )
    bytes_used = models.BigIntegerField(default=0, help_text="Payloads, replies, headers and logs.")
    removed_before = models.DateTimeField(
        null=True, help_text="Runs that started before have no payload: the quota was used up."
    )

    def __str__(self) -> str:
        return f"Run storage of {self.organisation_id}"
