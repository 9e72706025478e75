"""Coloured labels of run outcomes."""

from django.utils.safestring import SafeString

from core.admin.display import DANGER, INFO, SUCCESS, WARNING, label
from scripts_engine.models import RunStatus

COLOURS: dict[str, str] = {
    RunStatus.SUCCEEDED: SUCCESS,
    RunStatus.FAILED: DANGER,
    RunStatus.TIMED_OUT: WARNING,
    RunStatus.OUT_OF_MEMORY: WARNING,
    RunStatus.QUEUED: INFO,
    RunStatus.RUNNING: INFO,
    RunStatus.LOST: DANGER,
    RunStatus.CANCELLED: "",
}


def status_label(status: str) -> SafeString:
    return label(RunStatus(status).label, COLOURS[status])
