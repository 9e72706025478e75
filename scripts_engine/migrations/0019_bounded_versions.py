from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Count, Sum
from django.db.models.functions import Length

_ROW_BYTES = 1024


def count_what_is_there(apps: Any, schema_editor: Any) -> None:
    """Counts existing versions, by characters, and hooks against the quota."""
    versions = apps.get_model("scripts_engine", "ScriptVersion").objects
    hooks = apps.get_model("scripts_engine", "Hook").objects
    storage = apps.get_model("accounts", "RunStorage").objects
    for organisation in apps.get_model("accounts", "Organisation").objects.only("pk"):
        sources = versions.filter(script__organisation=organisation).aggregate(
            rows=Count("pk"), characters=Sum(Length("source"))
        )
        rows = sources["rows"] + hooks.filter(script__organisation=organisation).count()
        definition_bytes = rows * _ROW_BYTES + (sources["characters"] or 0)
        storage.update_or_create(
            organisation=organisation, defaults={"definition_bytes": definition_bytes}
        )


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0018_definition_bytes"),
        ("scripts_engine", "0018_body_hash_needs_bodies"),
    ]

    operations = [
        migrations.AlterField(
            model_name="run",
            name="script_version",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="runs",
                to="scripts_engine.scriptversion",
            ),
        ),
        migrations.RunPython(count_what_is_there, migrations.RunPython.noop),
    ]
