from django.db import migrations, models

from core.database.online_index import AddIndexOnline, RemoveIndexOnline


class Migration(migrations.Migration):
    # PostgreSQL builds an index beside its table's writers only outside of a transaction.
    atomic = False

    dependencies = [
        ("scripts_engine", "0004_run_bytes"),
    ]

    # The new one begins with the columns of the old one, which it replaces.
    operations = [
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                fields=["organisation", "-id", "payload_bytes"],
                name="run_of_organisation_with_bytes",
            ),
        ),
        RemoveIndexOnline(model_name="run", name="run_of_organisation"),
    ]
