"""E-mails to administrators about scripts that start to fail, and that work again.

A look at each script's newest run, once a minute and apart from calls. So one failure among many
successes is rarely seen, and a script that runs once a day is reported at its first failure.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import NamedTuple

from django.db import transaction
from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone
from django_tasks import task

from accounts.flows.notices import administrators_of, may_mail
from accounts.messages.delivering import delivering
from accounts.messages.email import send_email
from accounts.rate_limits import windows
from core.plain_text import name_for_mail
from scripts_engine.models import FailureNotice, Run, RunStatus, Script, Trigger
from scripts_engine.models.run import FAILURES

PAUSE = timedelta(hours=1)
# Failures from before this time are no news, for example when the mails are switched on.
NEWS = timedelta(days=1)
_SCRIPTS_AT_ONCE = 500
# Runs that nobody watches.
_TRIGGERS = (Trigger.HOOK, Trigger.QUEUE, Trigger.SCHEDULE, Trigger.REPLAY)
# A failed attempt that is followed by another is no failure yet.
_IS_LAST_ATTEMPT = Q(attempt__isnull=True) | Q(is_dead_letter__isnull=False)


class _State(NamedTuple):
    script: Script
    newest: Run
    notice: FailureNotice | None

    @property
    def is_failing(self) -> bool:
        return self.newest.status != RunStatus.SUCCEEDED

    @property
    def is_news(self) -> bool:
        """Whether it is not what administrators were told last."""
        if self.notice is not None:
            return self.is_failing != self.notice.is_failing
        return self.is_failing and self.newest.started_at > timezone.now() - NEWS

    @property
    def may_be_told(self) -> bool:
        """Not twice within an hour. A time to come is from before the clock was set back."""
        now = timezone.now()
        return self.notice is None or not now - PAUSE < self.notice.sent_at <= now


def mail_about_failures() -> int:
    """Queues the e-mails that are due. Returns the number of scripts that they are about."""
    return sum(_tell(state) for state in _states() if state.is_news and state.may_be_told)


def _states() -> Iterator[_State]:
    """The scripts that have run, of organisations that want such e-mails."""
    wanted = Script.objects.existing().filter(
        organisation__failure_mails=True, organisation__is_active=True
    )
    ended = Run.objects.counted().filter(
        Q(status=RunStatus.SUCCEEDED) | Q(_IS_LAST_ATTEMPT, status__in=FAILURES),
        # A range of one script, so that PostgreSQL does not walk through the runs of all scripts.
        script__gte=OuterRef("pk"),
        script__lte=OuterRef("pk"),
        trigger__in=_TRIGGERS,
    )
    newest = ended.order_by("script_id", "-id").values("pk")[:1]
    scripts = wanted.annotate(newest_id=Subquery(newest))
    rows = scripts.order_by("pk").select_related("failure_notice").iterator(_SCRIPTS_AT_ONCE)
    while batch := list(islice(rows, _SCRIPTS_AT_ONCE)):
        yield from _with_runs(batch)


def _with_runs(scripts: Sequence[Script]) -> Iterator[_State]:
    run_ids = {script.pk: script.newest_id for script in scripts}  # type: ignore[attr-defined]
    runs = Run.objects.only("status", "started_at").in_bulk(run_ids.values())
    for script in scripts:
        newest = runs.get(run_ids[script.pk])
        if newest is not None:
            yield _State(script, newest, getattr(script, "failure_notice", None))


@transaction.atomic
def _tell(state: _State) -> bool:
    """Claims the news in the transaction that queues the e-mails: one process sends them."""
    script, now = state.script, timezone.now()
    if state.notice is None:
        first = {"is_failing": True, "sent_at": now}
        _, is_claimed = FailureNotice.objects.get_or_create(script=script, defaults=first)
    else:
        known = FailureNotice.objects.filter(pk=script.pk, sent_at=state.notice.sent_at)
        is_claimed = known.update(is_failing=state.is_failing, sent_at=now) == 1
    if not is_claimed:
        return False
    limit, organisation_id = windows.FAILURE_MAILS_TO_ADDRESS, script.organisation_id
    for administrator in administrators_of(organisation_id):
        if may_mail(administrator, organisation_id, limit, "failure-mail-to"):
            tell_of_failure.enqueue(
                str(state.newest.pk), str(administrator.pk), is_failing=state.is_failing
            )
    return True


@task()
def tell_of_failure(run_id: str, administrator_id: str, *, is_failing: bool) -> None:
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
    }
    name = "script_fails" if is_failing else "script_works_again"
    with delivering(f"Mail about script {run.script_id} for user {administrator.pk}"):
        send_email(administrator.delivery_email, name, context)
