from hashlib import sha256
from typing import Any

import core.names
import django.db.models.deletion
import django.utils.timezone
import uuid
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

from core.names import make_names_unique


def name_scripts(apps: Any, schema_editor: Any) -> None:
    scripts = apps.get_model("scripts_engine", "Script")._base_manager.order_by("created_at", "pk")
    make_names_unique(
        scripts.iterator(),
        lambda script: script.organisation_id if script.deleted_at is None else script.pk,
        default="Script",
    )


def publish_versions(apps: Any, schema_editor: Any) -> None:
    """Every version of before drafts went live when it was saved."""
    versions = apps.get_model("scripts_engine", "ScriptVersion")._base_manager
    for version in versions.iterator():
        digest = sha256(version.source.encode()).hexdigest()
        versions.filter(pk=version.pk).update(
            source_digest=digest, published_at=version.created_at
        )



class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_first_release'),
        ('scripts_engine', '0001_first_release'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Blob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(help_text='SHA-256, in hex.', max_length=64)),
                ('source', models.TextField(blank=True)),
                ('used_at', models.DateTimeField(db_index=True, help_text='When it was uploaded or last planned.')),
            ],
        ),
        migrations.CreateModel(
            name='Plan',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('changes', models.JSONField(help_text='[{kind, id, name, action, seen, after, source, libraries}]; seen is the digest of the state before.')),
                ('problems', models.JSONField(default=list, help_text='[{path, code, message}]')),
                ('secrets_missing', models.JSONField(default=list, help_text='Names of secrets.')),
                ('made_by', models.CharField(help_text='“user” or “key” with the id of whose request made it.', max_length=45)),
                ('applied_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Release',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField(help_text='Counts from 1 for each organisation.')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('note', models.CharField(blank=True, default='', max_length=500)),
                ('actor_kind', models.CharField(choices=[('user', 'User'), ('operator', 'Moonhook operator'), ('outsider', 'An administrator of another organisation'), ('api-key', 'API key'), ('command', 'Command'), ('system', 'Moonhook'), ('stranger', 'Not logged in')], max_length=16)),
                ('actor_id', models.CharField(blank=True, max_length=60)),
                ('actor_label', models.CharField(max_length=254)),
                ('bytes', models.PositiveIntegerField(help_text='Counted against the storage quota.')),
            ],
            options={
                'ordering': ['-number'],
            },
        ),
        migrations.CreateModel(
            name='ReleaseChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.PositiveSmallIntegerField(help_text='Within the release, from 0.')),
                ('kind', models.CharField(help_text='Script, Hook or Schedule.', max_length=16)),
                ('object_id', models.UUIDField()),
                ('script_id', models.UUIDField(db_index=True)),
                ('name', models.CharField(help_text='The name afterwards.', max_length=100)),
                ('action', models.CharField(choices=[('Create', 'Create'), ('Update', 'Update'), ('Rename', 'Rename'), ('Delete', 'Delete'), ('None', 'None')], max_length=8)),
                ('before', models.JSONField(null=True)),
                ('after', models.JSONField(null=True)),
                ('version_before', models.UUIDField(db_index=True, null=True)),
                ('version_after', models.UUIDField(db_index=True, null=True)),
            ],
            options={
                'ordering': ['release', 'place'],
            },
        ),
        migrations.CreateModel(
            name='RequiredLibrary',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='As the source spells it.', max_length=100)),
            ],
        ),
        migrations.AddField(
            model_name='script',
            name='is_library',
            field=models.BooleanField(db_default=False, default=False, editable=False, help_text='Whether other scripts require it, and nothing runs it.', verbose_name='library'),
        ),
        migrations.AddField(
            model_name='script',
            name='name_key',
            field=core.names.NameKey(default='', editable=False, max_length=300),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='script',
            name='revised_at',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False),
        ),
        migrations.AddField(
            model_name='script',
            name='revised_by',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=254),
        ),
        migrations.AddField(
            model_name='script',
            name='revision',
            field=models.PositiveIntegerField(db_default=1, default=1, editable=False, help_text='Grows with each change.'),
        ),
        migrations.AddField(
            model_name='scriptversion',
            name='base',
            field=models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='scripts_engine.scriptversion'),
        ),
        migrations.AddField(
            model_name='scriptversion',
            name='draft_of',
            field=models.CharField(blank=True, db_default='', default='', editable=False, help_text='The author whose draft it is: user or key, with its id. Empty: no draft.', max_length=60),
        ),
        migrations.AddField(
            model_name='scriptversion',
            name='has_run',
            field=models.BooleanField(db_default=False, default=False, editable=False, help_text='Whether a draft has run.'),
        ),
        migrations.AddField(
            model_name='scriptversion',
            name='published_at',
            field=models.DateTimeField(editable=False, help_text='When it first went live; null if it never did.', null=True),
        ),
        migrations.AddField(
            model_name='scriptversion',
            name='source_digest',
            field=models.CharField(db_index=True, default='', editable=False, help_text='SHA-256 of the source, in hex.', max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='secret',
            name='revised_at',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False),
        ),
        migrations.AddField(
            model_name='secret',
            name='revised_by',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=254),
        ),
        migrations.AddField(
            model_name='secret',
            name='revision',
            field=models.PositiveIntegerField(db_default=1, default=1, editable=False, help_text='Grows with each change.'),
        ),
        migrations.AddField(
            model_name='storedvalue',
            name='revised_at',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False),
        ),
        migrations.AddField(
            model_name='storedvalue',
            name='revised_by',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=254),
        ),
        migrations.AddField(
            model_name='storedvalue',
            name='revision',
            field=models.PositiveIntegerField(db_default=1, default=1, editable=False, help_text='Grows with each change.'),
        ),
        migrations.RunPython(name_scripts, migrations.RunPython.noop),
        migrations.RunPython(publish_versions, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='script',
            name='name',
            field=models.CharField(help_text="The script's name, which no other of the organisation has.", max_length=100, validators=[core.names.validate_name_characters]),
        ),
        migrations.AddConstraint(
            model_name='script',
            constraint=models.UniqueConstraint(condition=models.Q(('deleted_at__isnull', True)), fields=('organisation', 'name_key'), name='one_script_per_name'),
        ),
        migrations.AddConstraint(
            model_name='scriptversion',
            constraint=models.UniqueConstraint(condition=models.Q(('draft_of', ''), _negated=True), fields=('script', 'draft_of'), name='one_draft_per_author'),
        ),
        migrations.AddField(
            model_name='blob',
            name='organisation',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='blobs', to='accounts.organisation'),
        ),
        migrations.AddField(
            model_name='plan',
            name='organisation',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='plans', to='accounts.organisation'),
        ),
        migrations.AddField(
            model_name='release',
            name='organisation',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='releases', to='accounts.organisation'),
        ),
        migrations.AddField(
            model_name='release',
            name='undoes',
            field=models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='undone_by', to='scripts_engine.release'),
        ),
        migrations.AddField(
            model_name='releasechange',
            name='release',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='scripts_engine.release'),
        ),
        migrations.AddField(
            model_name='requiredlibrary',
            name='library_version',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='required_by', to='scripts_engine.scriptversion'),
        ),
        migrations.AddField(
            model_name='requiredlibrary',
            name='version',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='requirements', to='scripts_engine.scriptversion'),
        ),
        migrations.AddConstraint(
            model_name='blob',
            constraint=models.UniqueConstraint(fields=('organisation', 'digest'), name='one_blob_per_digest'),
        ),
        migrations.AddConstraint(
            model_name='release',
            constraint=models.UniqueConstraint(fields=('organisation', 'number'), name='one_release_per_number'),
        ),
        migrations.AddIndex(
            model_name='releasechange',
            index=models.Index(fields=['object_id', '-release'], name='change_of_object'),
        ),
        migrations.AddConstraint(
            model_name='releasechange',
            constraint=models.UniqueConstraint(fields=('release', 'place'), name='one_change_per_place'),
        ),
        migrations.AddConstraint(
            model_name='requiredlibrary',
            constraint=models.UniqueConstraint(fields=('version', 'name'), name='one_library_per_name'),
        ),
    ]
