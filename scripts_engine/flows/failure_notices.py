"""The e-mail about a script that fails or works again, as the background worker sends it."""

from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string

from accounts.flows.administrator_mails import administrators_of
from accounts.messages.delivering import delivering
from core.plain_text import name_for_mail
from scripts_engine.models import Run


def send_failure_mail(run_id: str, administrator_id: str, *, is_failing: bool) -> None:
    """Tells one administrator how the run of a script ended, if both are still there.

    Raises ``TryAgainError`` or ``DeliveryError``.
    """
    run = Run.objects.select_related("script", "organisation").filter(pk=run_id).first()
    if run is None:
        return
    administrator = administrators_of(run.organisation_id).filter(pk=administrator_id).first()
    if administrator is None:
        return
    context = {
        "run": run,
        "script_name": name_for_mail(run.script.name),
        "organisation_name": name_for_mail(run.organisation.name),
        "public_url": settings.PUBLIC_URL,
    }
    name = "script_fails" if is_failing else "script_works_again"
    with delivering(f"Mail about script {run.script_id} for user {administrator.pk}"):
        send_mail(
            subject=render_to_string(f"messages/{name}_subject.txt", context).strip(),
            message=render_to_string(f"messages/{name}.txt", context),
            from_email=None,
            recipient_list=[administrator.delivery_email],
        )
