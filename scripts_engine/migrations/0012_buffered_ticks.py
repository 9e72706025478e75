from django.db import migrations, models

from core.database.online_index import AddIndexOnline


class Migration(migrations.Migration):
    # PostgreSQL builds an index beside its table's writers only outside of a transaction.
    atomic = False

    dependencies = [
        ("scripts_engine", "0011_queue_indexes"),
    ]

    operations = [
        AddIndexOnline(
            model_name="schedule",
            index=models.Index(
                condition=models.Q(("buffered_tick_at__isnull", False)),
                fields=["buffered_tick_at"],
                name="schedule_buffered_tick",
            ),
        ),
    ]
