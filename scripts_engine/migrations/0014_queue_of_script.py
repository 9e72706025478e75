from django.db import migrations, models

from core.database.online_index import AddIndexOnline


class Migration(migrations.Migration):
    # PostgreSQL builds an index beside its table's writers only outside of a transaction.
    atomic = False

    dependencies = [
        ("scripts_engine", "0013_failure_mails"),
    ]

    operations = [
        AddIndexOnline(
            model_name="queueentry",
            index=models.Index(fields=["script", "due_at", "run"], name="queue_of_script"),
        ),
        AddIndexOnline(
            model_name="script",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", False)),
                fields=["deleted_at"],
                name="script_deleted",
            ),
        ),
    ]
