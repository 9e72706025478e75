from django.db import migrations, models
from django.db.models import Q

from core.database.online_index import AddIndexOnline

OF_DRAFT = Q(script_version__isnull=True)
OTHER_THAN_OK = ~Q(response_status=200)


class Migration(migrations.Migration):
    # PostgreSQL builds an index beside its table's writers only outside of a transaction.
    atomic = False

    dependencies = [
        ("scripts_engine", "0006_plainer_help_texts"),
    ]

    operations = [
        AddIndexOnline(
            model_name="run",
            index=models.Index(fields=["-id", "status"], condition=OF_DRAFT, name="run_of_draft"),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                fields=["organisation", "-id", "status"],
                condition=OF_DRAFT,
                name="run_of_draft_organisation",
            ),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                fields=["-id", "response_status"],
                condition=OTHER_THAN_OK,
                name="run_other_than_ok",
            ),
        ),
        AddIndexOnline(
            model_name="run",
            index=models.Index(
                fields=["organisation", "-id", "response_status"],
                condition=OTHER_THAN_OK,
                name="run_other_than_ok_organisation",
            ),
        ),
    ]
