from django.db import migrations, models

from core.database.online_index import AddIndexOnline


class Migration(migrations.Migration):
    # PostgreSQL builds an index beside its table's writers only outside of a transaction.
    atomic = False

    dependencies = [
        ("scripts_engine", "0010_queue"),
    ]

    operations = [
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                condition=models.Q(("is_dead_letter", True)),
                fields=["organisation", "-id"],
                name="run_dead_letter",
            ),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                condition=models.Q(("first_run__isnull", False)),
                fields=["first_run", "id"],
                name="run_later_attempt",
            ),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                condition=models.Q(("pushed_by__isnull", False)),
                fields=["pushed_by", "id"],
                name="run_pushed",
            ),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                condition=models.Q(("schedule__isnull", False)),
                fields=["schedule", "-id"],
                name="run_scheduled",
            ),
        ),
    ]
