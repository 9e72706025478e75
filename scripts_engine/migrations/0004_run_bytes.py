from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0009_run_quota"),
        ("scripts_engine", "0003_rare_runs"),
    ]

    # Nullable and without constraints: no row is read or written for them.
    operations = [
        migrations.AddField(
            model_name="run",
            name="request_bytes",
            field=models.IntegerField(help_text="The size of the payload.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="response_bytes",
            field=models.IntegerField(help_text="The size of the reply.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="payload_bytes",
            field=models.IntegerField(
                help_text="What the run counts against its organisation's quota: payload, reply, "
                "headers and logs. 0 when they were removed; null until they are counted.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="payload_removed_at",
            field=models.DateTimeField(
                help_text="When payload, reply, headers and logs were removed: the quota was "
                "used up.",
                null=True,
            ),
        ),
    ]
