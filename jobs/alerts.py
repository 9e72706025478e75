"""Runs the alert script of an organisation, through the queue, with what it is told of."""

import json
import logging

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction

from accounts.alerts import Alert, register_alert_sender
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import is_first
from core.admin.links import page_of
from core.database.unavailable import DatabaseUnavailable
from jobs.models import QueueEntry
from jobs.queue.enqueue import QueuedWork, enqueue
from scripts_engine.models import Script, Trigger
from scripts_engine.runs.spec import Event

logger = logging.getLogger(__name__)

VERSION = 1
MAX_WAITING = 60


def send_alert(alert: Alert) -> bool:
    """Queues a run of the alert script, in the caller's transaction. Returns whether it is queued.

    What the alert is about goes on if that fails: with a full queue, for example, only the alert is
    lost. Raises ``DatabaseUnavailable``.
    """
    scripts = Script.objects.told_of_alerts().select_related("organisation")
    script = scripts.filter(organisation=alert.subject.organisation_id).first()
    if script is None or _is_flooded(script):
        return False
    identifiers = (alert.kind.value, str(script.organisation_id), str(alert.subject.pk))
    try:
        # One transaction, so that an alert that is not queued does not count.
        with transaction.atomic():
            if not is_first(windows.ALERTS_OF_SUBJECT, "alert", *identifiers):
                return False
            enqueue(_work(script, alert))
    except DatabaseUnavailable:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        logger.exception("Alert %s of %s about %s is lost: %s", *identifiers, text)
        return False
    return True


def _is_flooded(script: Script) -> bool:
    """Whether so many of its alerts wait that more would take the organisation's queue."""
    return QueueEntry.objects.filter(script=script)[:MAX_WAITING].count() == MAX_WAITING


def _work(script: Script, alert: Alert) -> QueuedWork:
    return QueuedWork(
        organisation_id=script.organisation_id,
        script_id=script.pk,
        version_id=script.current_version_id,
        event=Event(
            method="POST",
            query="",
            headers=(("Content-Type", "application/json"),),
            body=_body(script, alert),
            client_address="",
        ),
        trigger=Trigger.ALERT,
        is_of_alert=True,
    )


def _body(script: Script, alert: Alert) -> bytes:
    subject, organisation = alert.subject, script.organisation
    told = {
        "type": alert.kind.value,
        "at": alert.at,
        "organisation": {"id": organisation.pk, "name": organisation.name},
        "subject": {
            "id": subject.pk,
            # Not its text: an API key's has the public half, which is not for all who read runs.
            "name": getattr(subject, "name", str(subject)),
            "url": settings.PUBLIC_URL + page_of(subject),
        },
        "data": alert.data,
        "version": VERSION,
    }
    return json.dumps(told, cls=DjangoJSONEncoder, ensure_ascii=False).encode()


def register() -> None:
    register_alert_sender(send_alert)
