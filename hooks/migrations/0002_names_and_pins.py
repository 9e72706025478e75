from typing import Any

import core.names
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from core.names import make_names_unique


def name_hooks(apps: Any, schema_editor: Any) -> None:
    hooks = apps.get_model("hooks", "Hook")._base_manager.order_by("created_at", "pk")
    make_names_unique(
        hooks.iterator(),
        lambda hook: hook.script_id if hook.deleted_at is None else hook.pk,
        default="Hook",
    )



class Migration(migrations.Migration):

    dependencies = [
        ('hooks', '0001_first_release'),
        ('scripts_engine', '0002_names_and_releases'),
    ]

    operations = [
        migrations.AddField(
            model_name='hook',
            name='name_key',
            field=core.names.NameKey(default='', editable=False, max_length=300),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='hook',
            name='pinned_version',
            field=models.ForeignKey(editable=False, help_text='The version that it runs; null: the live one.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='scripts_engine.scriptversion'),
        ),
        migrations.AddField(
            model_name='hook',
            name='revised_at',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False),
        ),
        migrations.AddField(
            model_name='hook',
            name='revised_by',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=254),
        ),
        migrations.AddField(
            model_name='hook',
            name='revision',
            field=models.PositiveIntegerField(db_default=1, default=1, editable=False, help_text='Grows with each change.'),
        ),
        migrations.RunPython(name_hooks, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='hook',
            name='name',
            field=models.CharField(help_text='Describes the caller, for example “shop orders”.', max_length=100, validators=[core.names.validate_name_characters]),
        ),
        migrations.AddConstraint(
            model_name='hook',
            constraint=models.UniqueConstraint(condition=models.Q(('deleted_at__isnull', True)), fields=('script', 'name_key'), name='one_hook_per_name'),
        ),
    ]
