from django.db import migrations, models
from django.db.models import Q

from core.database.online_index import AddIndexOnline

NOT_SUCCEEDED = ~Q(status="succeeded")
NOT_BY_HOOK = ~Q(trigger="hook")


class Migration(migrations.Migration):
    # PostgreSQL builds an index beside its table's writers only outside of a transaction.
    atomic = False

    dependencies = [
        ("scripts_engine", "0002_run_unsaved_source"),
    ]

    operations = [
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                fields=["-id", "status"], condition=NOT_SUCCEEDED, name="run_not_succeeded"
            ),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                fields=["organisation", "-id", "status"],
                condition=NOT_SUCCEEDED,
                name="run_not_succeeded_organisation",
            ),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                fields=["script", "-id", "status"],
                condition=NOT_SUCCEEDED,
                name="run_not_succeeded_script",
            ),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                fields=["hook", "-id", "status"],
                condition=NOT_SUCCEEDED,
                name="run_not_succeeded_hook",
            ),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                fields=["-id", "trigger"], condition=NOT_BY_HOOK, name="run_not_by_hook"
            ),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                fields=["organisation", "-id", "trigger"],
                condition=NOT_BY_HOOK,
                name="run_not_by_hook_organisation",
            ),
        ),
    ]
