from typing import Any
from uuid import UUID

from django.db import migrations
from django.db.models import F, OuterRef, Subquery

BATCH = 1000
FIRST = UUID(int=0)


def record_under_home(apps: Any, schema_editor: Any) -> None:
    """Puts events about a person's own credentials under their home, where they have none.

    They had none when the person was a member of several organisations. Only events of which the
    person is the user and whose address is theirs still: of the others it is not certain whom
    they are about. A home never changes while it is set, so it is the one of that time.

    Goes once through the events without an organisation, in the order of their index; a batch a
    transaction, so that sign-ins go on meanwhile.
    """
    events = apps.get_model("accounts", "AuthEvent")._base_manager
    users = apps.get_model("accounts", "User")._base_manager
    home = users.filter(pk=OuterRef("user_id")).values("home_id")
    missing = events.filter(
        organisation__isnull=True,
        user__home__isnull=False,
        user__is_superuser=False,
        user__email=F("email"),
    )
    after = FIRST
    while batch := list(
        events.filter(organisation__isnull=True, pk__gt=after)
        .order_by("pk")
        .values_list("pk", flat=True)[:BATCH]
    ):
        found = list(missing.filter(pk__in=batch).values_list("pk", flat=True))
        events.filter(pk__in=found).update(organisation_id=Subquery(home[:1]))
        after = batch[-1]


class Migration(migrations.Migration):
    # Each batch is a transaction of its own.
    atomic = False

    dependencies = [
        ("accounts", "0006_homes_left"),
    ]

    operations = [
        migrations.RunPython(record_under_home, migrations.RunPython.noop, elidable=True),
    ]
