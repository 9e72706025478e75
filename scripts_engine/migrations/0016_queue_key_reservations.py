from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scripts_engine', '0015_references_of_queue_entry'),
    ]

    operations = [
        migrations.AddField(
            model_name='queuekey',
            name='reserved_by',
            field=models.UUIDField(help_text='The run that pushes this one, while it is in progress.', null=True),
        ),
    ]
