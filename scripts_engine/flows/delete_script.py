from django.utils import timezone

from scripts_engine.models import Script


def delete_script(script: Script) -> None:
    """Stops the script and its hooks at once; its runs and versions stay readable."""
    Script.objects.existing().filter(pk=script.pk).update(deleted_at=timezone.now())
