from django.db import models

from accounts.models.organisation import Organisation


class RunStorage(models.Model):
    """What an organisation stores, limited by ``Organisation.run_bytes_limit``.

    Each process adds its share of the payloads of runs every few seconds, and upkeep recounts,
    because a killed process may not have added its last MiB. What defines scripts and hooks is
    counted exactly, and payloads make room for it.
    """

    organisation = models.OneToOneField(
        Organisation, primary_key=True, on_delete=models.CASCADE, related_name="run_storage"
    )
    bytes_used = models.BigIntegerField(default=0, help_text="Payloads, replies, headers and logs.")
    definition_bytes = models.BigIntegerField(
        default=0, db_default=0, help_text="Versions of scripts, and hooks."
    )
    removed_before = models.DateTimeField(
        null=True, help_text="Runs that started earlier have lost their payload to the quota."
    )

    def __str__(self) -> str:
        return f"Run storage of {self.organisation_id}"

    @property
    def total_bytes(self) -> int:
        return max(0, self.bytes_used) + self.definition_bytes

    @property
    def payload_bytes_limit(self) -> int | None:
        """What the quota leaves for the payloads of runs; ``None`` for no quota."""
        limit = self.organisation.run_bytes_limit
        return None if limit is None else max(0, limit - self.definition_bytes)
