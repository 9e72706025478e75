from django.db import migrations, models

from core.database.online_index import AddIndexOnline


class Migration(migrations.Migration):
    # PostgreSQL builds an index beside its table's writers only outside of a transaction.
    atomic = False

    dependencies = [
        ("scripts_engine", "0016_queue_key_reservations"),
    ]

    operations = [
        AddIndexOnline(
            model_name="queueentry",
            index=models.Index(
                condition=models.Q(("lease_id__isnull", True)),
                fields=["organisation", "script", "due_at", "run"],
                name="queue_waiting_by_script",
            ),
        ),
    ]
