from django.db import migrations


def run_every_delivery(apps, schema_editor):
    """Ends the comparison of bodies where anyone may call with GET: those are all empty."""
    hooks = apps.get_model("scripts_engine", "Hook").objects.all()
    compared = hooks.filter(sender="", idempotency="body-hash").values_list("pk", "methods")
    ended = [pk for pk, methods in compared if methods is None or "GET" in methods]
    hooks.filter(pk__in=ended).update(idempotency="")


class Migration(migrations.Migration):
    dependencies = [
        ("scripts_engine", "0017_queue_waiting_by_script"),
    ]

    operations = [
        migrations.RunPython(run_every_delivery, migrations.RunPython.noop, elidable=True),
    ]
