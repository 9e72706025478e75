from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0010_plainer_help_texts")]

    operations = [
        migrations.AlterModelOptions(
            name="authevent",
            options={
                "ordering": ["-id"],
                "verbose_name": "audit log entry",
                "verbose_name_plural": "audit log entries",
            },
        ),
    ]
