"""Background tasks of scripts. See ``accounts.tasks`` for what a task must observe."""

from django_tasks import task

from scripts_engine.flows.failure_notices import send_failure_mail


@task()
def tell_of_failure(run_id: str, administrator_id: str, *, is_failing: bool) -> None:
    send_failure_mail(run_id, administrator_id, is_failing=is_failing)
