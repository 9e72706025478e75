from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.flows.overlap import checked_overlap
from accounts.models import AuthEventKind, User
from core.http.origin import NOWHERE, Origin
from scripts_engine.flows.issue_hook import IssuedHook, give_call_token, record_call_token
from scripts_engine.models import Hook


def rotate_call_token(
    hook: Hook, *, overlap_seconds: int = 0, origin: Origin = NOWHERE, by: User | None = None
) -> IssuedHook:
    """A new call token; the old one is good for the overlap, 0 to 7 days.

    Raises ``ValidationError`` by field.
    """
    issued = _rotate(hook, checked_overlap(overlap_seconds))
    record_call_token(AuthEventKind.CALL_TOKEN_ROTATED, issued.hook, origin, by)
    return issued


@transaction.atomic
def _rotate(stale: Hook, overlap: timedelta) -> IssuedHook:
    """The row is held, so that of two rotations at once the later takes over the earlier's."""
    rows = Hook.objects.select_for_update(of=("self",)).select_related("script__organisation")
    hook = rows.get(pk=stale.pk)
    hook.previous_digest, hook.previous_pepper_version = hook.digest, hook.pepper_version
    hook.previous_valid_until = timezone.now() + overlap
    call_token = give_call_token(hook)
    hook.save(
        update_fields=[
            "digest",
            "pepper_version",
            "previous_digest",
            "previous_pepper_version",
            "previous_valid_until",
        ]
    )
    return IssuedHook(hook, call_token)
