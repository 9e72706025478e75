from typing import Any

from django.db import migrations
from django.db.models import Exists, OuterRef

BATCH = 500


def clear_homes_left(apps: Any, schema_editor: Any) -> None:
    """A user whom their home has let go is their own: clears homes without a membership there.

    A batch a statement, each committed by itself: users log in meanwhile.
    """
    users = apps.get_model("accounts", "User")._base_manager
    memberships = apps.get_model("accounts", "Membership")._base_manager
    at_home = memberships.filter(user=OuterRef("pk"), organisation=OuterRef("home"))
    left = users.filter(~Exists(at_home), home__isnull=False)
    while batch := list(left.order_by().values_list("pk", flat=True)[:BATCH]):
        left.filter(pk__in=batch).update(home=None)


class Migration(migrations.Migration):
    # Each batch is a transaction of its own.
    atomic = False

    dependencies = [
        ("accounts", "0005_invitations"),
    ]

    operations = [
        migrations.RunPython(clear_homes_left, migrations.RunPython.noop, elidable=True),
    ]
