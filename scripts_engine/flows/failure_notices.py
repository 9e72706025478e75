"""Tells organisations of scripts that start to fail, and that work again.

A look at each script's newest run, once a minute and apart from calls. So one failure among many
successes is rarely seen, and a script that runs once a day is reported at its first failure.

What is news is decided here, for each way of telling: administrators get e-mails if the
organisation wants them, and its alert script gets alerts. Failures of the alert script, and of what
it sets off, always go by e-mail, because no alert tells of them.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import F, OuterRef, Q, Subquery
from django.utils import timezone
from django_tasks import task

from accounts.alerts import alert
from accounts.flows.notices import administrators_of, may_mail
from accounts.messages.delivering import delivering
from accounts.messages.email import send_email
from accounts.rate_limits import windows
from core.plain_text import name_for_mail
from scripts_engine.audit_kinds import ScriptAlert
from scripts_engine.failures import first_line
from scripts_engine.models import FailureNotice, NoticeWay, Run, RunStatus, Script, Trigger
from scripts_engine.models.run import FAILURES

# How often a script is told of in each way. Alerts are limited by their kind.
PAUSE = {NoticeWay.MAIL: timedelta(hours=1), NoticeWay.ALERT: timedelta(0)}
# Failures from before this time are no news, for example when the mails are switched on.
NEWS = timedelta(days=1)
_SCRIPTS_AT_ONCE = 500
# Runs that nobody watches.
_TRIGGERS = (Trigger.HOOK, Trigger.QUEUE, Trigger.SCHEDULE, Trigger.REPLAY, Trigger.ALERT)
# A failed attempt that is followed by another is no failure yet.
_IS_LAST_ATTEMPT = Q(attempt__isnull=True) | Q(is_dead_letter__isnull=False)
_COLUMNS = ("status", "started_at", "error_message", "is_of_alert")


class _State(NamedTuple):
    script: Script
    newest: Run
    way: NoticeWay
    notice: FailureNotice | None
    """What was told last in that way."""

    @property
    def is_failing(self) -> bool:
        return self.newest.status != RunStatus.SUCCEEDED

    @property
    def is_news(self) -> bool:
        """Whether it is not what was told last."""
        if self.notice is not None:
            return self.is_failing != self.notice.is_failing
        return self.is_failing and self.newest.started_at > timezone.now() - NEWS

    @property
    def may_be_told(self) -> bool:
        """Whether the pause is over. A time to come is from before the clock was set back."""
        now = timezone.now()
        return self.notice is None or not now - PAUSE[self.way] < self.notice.sent_at <= now


def tell_of_failures() -> int:
    """Queues the e-mails and alerts that are due. Returns how often something was told."""
    return sum(_tell(state) for state in _states() if state.is_news and state.may_be_told)


def _states() -> Iterator[_State]:
    """The scripts that have run, by the ways in which their organisations are told of them."""
    wanted = Script.objects.existing().filter(
        Q(organisation__failure_mails=True) | Q(organisation__alert_script__isnull=False),
        organisation__is_active=True,
    )
    ended = Run.objects.counted().filter(
        Q(status=RunStatus.SUCCEEDED) | Q(_IS_LAST_ATTEMPT, status__in=FAILURES),
        # A range of one script, so that PostgreSQL does not walk through the runs of all scripts.
        script__gte=OuterRef("pk"),
        script__lte=OuterRef("pk"),
        trigger__in=_TRIGGERS,
    )
    newest = ended.order_by("script_id", "-id").values("pk")[:1]
    scripts = wanted.annotate(
        newest_id=Subquery(newest),
        sends_mails=F("organisation__failure_mails"),
        alert_script_id=F("organisation__alert_script__script"),
    )
    rows = scripts.order_by("pk").iterator(_SCRIPTS_AT_ONCE)
    alerted = set(Script.objects.told_of_alerts().values_list("organisation_id", flat=True))
    while batch := list(islice(rows, _SCRIPTS_AT_ONCE)):
        yield from _with_runs(batch, alerted)


def _with_runs(scripts: Sequence[Script], alerted: set[UUID]) -> Iterator[_State]:
    run_ids = {script.pk: script.newest_id for script in scripts}  # type: ignore[attr-defined]
    runs = Run.objects.only(*_COLUMNS).in_bulk(run_ids.values())
    notices: dict[UUID, dict[str, FailureNotice]] = defaultdict(dict)
    for notice in FailureNotice.objects.filter(script__in=run_ids):
        notices[notice.script_id][notice.way] = notice
    for script in scripts:
        newest = runs.get(run_ids[script.pk])
        if newest is None:
            continue
        for way in _ways(script, newest, has_alerts=script.organisation_id in alerted):
            yield _State(script, newest, way, notices[script.pk].get(way))


def _ways(script: Script, newest: Run, *, has_alerts: bool) -> Iterator[NoticeWay]:
    sends_mails, alert_script_id = script.sends_mails, script.alert_script_id  # type: ignore[attr-defined]
    if sends_mails or newest.is_of_alert or script.pk == alert_script_id:
        yield NoticeWay.MAIL
    if has_alerts and not newest.is_of_alert:
        yield NoticeWay.ALERT


@transaction.atomic
def _tell(state: _State) -> bool:
    """Claims the news in the transaction that queues what tells it: one process does."""
    if not _claim(state):
        return False
    if state.way == NoticeWay.MAIL:
        _mail(state)
    elif not _alert(state):
        # Too early, so the next look tells it.
        transaction.set_rollback(True)
        return False
    return True


def _claim(state: _State) -> bool:
    notice, told = state.notice, {"is_failing": state.is_failing, "sent_at": timezone.now()}
    if notice is None:
        _, is_claimed = FailureNotice.objects.get_or_create(
            script=state.script, way=state.way, defaults=told
        )
        return is_claimed
    known = FailureNotice.objects.filter(pk=notice.pk, sent_at=notice.sent_at)
    return known.update(**told) == 1


def _mail(state: _State) -> None:
    limit, organisation_id = windows.FAILURE_MAILS_TO_ADDRESS, state.script.organisation_id
    for administrator in administrators_of(organisation_id):
        if may_mail(administrator, organisation_id, limit, "failure-mail-to"):
            mail_about_failure.enqueue(
                str(state.newest.pk), str(administrator.pk), is_failing=state.is_failing
            )


def _alert(state: _State) -> bool:
    newest = state.newest
    if not state.is_failing:
        return alert(ScriptAlert.RECOVERED, state.script, run=newest.pk)
    return alert(
        ScriptAlert.FAILING,
        state.script,
        run=newest.pk,
        error=first_line(newest.error_message, newest.status),
    )


@task()
def mail_about_failure(run_id: str, administrator_id: str, *, is_failing: bool) -> None:
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
