from django.db import migrations, models

from core.database.online_index import AddIndexOnline


class Migration(migrations.Migration):
    # PostgreSQL builds an index beside its table's writers only outside of a transaction.
    atomic = False

    dependencies = [
        ("accounts", "0003_organisation_runs_kept"),
    ]

    operations = [
        AddIndexOnline(
            model_name="authevent",
            index=models.Index(
                fields=["organisation", "kind", "-id"],
                condition=~models.Q(kind="session.opened"),
                name="event_of_rarer_kind",
            ),
        ),
    ]
