from django.db import migrations, models

from core.database.online_index import AddIndexOnline


class Migration(migrations.Migration):
    # PostgreSQL builds an index beside its table's writers only outside of a transaction.
    atomic = False

    dependencies = [
        ("accounts", "0007_events_of_home"),
    ]

    operations = [
        AddIndexOnline(
            model_name="authevent",
            index=models.Index(
                fields=["organisation", "user", "-id"],
                condition=models.Q(user__isnull=False),
                name="event_of_user",
            ),
        ),
    ]
