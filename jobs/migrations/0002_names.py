from typing import Any

import core.names
import django.utils.timezone
from django.db import migrations, models

from core.names import make_names_unique


def name_schedules(apps: Any, schema_editor: Any) -> None:
    schedules = apps.get_model("jobs", "Schedule")._base_manager.order_by("created_at", "pk")
    # Schedules end with their script, so that they do not hold a name.
    schedules.filter(script__deleted_at__isnull=False).delete()
    if schema_editor.connection.vendor == "postgresql":
        # Deferred checks of the deletion would hold up the changes of the table.
        schema_editor.connection.check_constraints()
    make_names_unique(
        schedules.iterator(), lambda schedule: schedule.organisation_id, default="Schedule"
    )


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_first_release'),
        ('jobs', '0001_first_release'),
        ('scripts_engine', '0002_names_and_releases'),
    ]

    operations = [
        migrations.AddField(
            model_name='schedule',
            name='name_key',
            field=core.names.NameKey(default='', editable=False, max_length=300),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='schedule',
            name='revised_at',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False),
        ),
        migrations.AddField(
            model_name='schedule',
            name='revised_by',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=254),
        ),
        migrations.AddField(
            model_name='schedule',
            name='revision',
            field=models.PositiveIntegerField(db_default=1, default=1, editable=False, help_text='Grows with each change.'),
        ),
        migrations.AddField(
            model_name='runlimits',
            name='version_id',
            field=models.UUIDField(help_text='The version that its runs are pinned to; null: the live one.', null=True),
        ),
        migrations.RunPython(name_schedules, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='schedule',
            name='name',
            field=models.CharField(help_text='What it is for, for example “nightly report”.', max_length=100, validators=[core.names.validate_name_characters]),
        ),
        migrations.AddConstraint(
            model_name='schedule',
            constraint=models.UniqueConstraint(fields=('organisation', 'name_key'), name='one_schedule_per_name'),
        ),
    ]
