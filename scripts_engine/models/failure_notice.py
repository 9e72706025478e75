from django.db import models

from scripts_engine.models.script import Script


class FailureNotice(models.Model):
    """What administrators were last told of a script: that it fails, or that it works again."""

    script = models.OneToOneField(
        Script, primary_key=True, on_delete=models.CASCADE, related_name="failure_notice"
    )
    is_failing = models.BooleanField()
    sent_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"Failure notice of script {self.script_id}"
