from typing import Any

from django.db import migrations
from django.db.migrations.recorder import MigrationRecorder

# The one that points at another comes before it.
TABLES = (
    "axes_accessattemptexpiration",
    "axes_accessattempt",
    "axes_accesslog",
    "axes_accessfailurelog",
)


def drop_tables(apps: Any, schema_editor: Any) -> None:
    """Wrong passwords are counted by the rate limits now; those of the last hour are forgotten."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        there = set(connection.introspection.table_names(cursor))
    for table in TABLES:
        if table in there:
            schema_editor.execute(f"DROP TABLE {schema_editor.quote_name(table)}")


def forget_app(apps: Any, schema_editor: Any) -> None:
    """What Django keeps of an app elsewhere. Entries of the history stay, without their model."""
    alias = schema_editor.connection.alias
    content_types = apps.get_model("contenttypes", "ContentType").objects.using(alias)
    of_axes = content_types.filter(app_label="axes")
    ids = list(of_axes.values_list("pk", flat=True))
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    permissions.filter(content_type_id__in=ids).delete()
    history = apps.get_model("admin", "LogEntry").objects.using(alias)
    history.filter(content_type_id__in=ids).update(content_type=None)
    of_axes.delete()
    MigrationRecorder(schema_editor.connection).migration_qs.filter(app="axes").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_events_of_user"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.RunPython(drop_tables, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(forget_app, migrations.RunPython.noop, elidable=True),
    ]
