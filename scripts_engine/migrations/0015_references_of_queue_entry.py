import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scripts_engine", "0014_queue_of_script"),
    ]

    operations = [
        migrations.AlterField(
            model_name="queueentry",
            name="script",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="queue_entries",
                to="scripts_engine.script",
            ),
        ),
        migrations.AlterField(
            model_name="queueentry",
            name="schedule",
            field=models.ForeignKey(
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="queue_entries",
                to="scripts_engine.schedule",
            ),
        ),
    ]
