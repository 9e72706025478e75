"""Numbers in the order of commits, by which a reader follows a table without missing a row.

A row is numbered by the transaction that writes it. PostgreSQL commits transactions in another
order than they began, so a reader takes the rows below ``settled_before`` only: those of
transactions older than the oldest one that still writes. SQLite has one writer at a time, and a
number is taken under its lock.
"""

import time
from functools import cache
from typing import Any

from django.db import connections, models
from django.db.models import Max, QuerySet

# What a row is given for a number; rows that are not to be followed yet have none.
THIS_COMMIT = 0
# Half of the bits are left to transactions of one cluster, the others to the time of its creation.
_CLUSTERS_SINCE = 1_577_836_800  # 2020-01-01
_CLUSTER = f"((system_identifier >> 32) - {_CLUSTERS_SINCE}) << 32"


class CommitNumber(models.BigIntegerField):
    """The number of the transaction that saved ``THIS_COMMIT`` here; ``None`` stays ``NULL``.

    The table needs an index that begins with it, for SQLite.
    """

    def get_db_prep_save(self, value: Any, connection: Any) -> int | None:
        if value is None:
            return None
        # Larger than all that was deleted, and all from before a backup was restored.
        return _number_of_cluster(connection.alias) if _has_xids(connection) else _microseconds()

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        if _has_xids(connection):
            return "(%s::bigint + pg_current_xact_id()::text::bigint)"
        quote = connection.ops.quote_name
        column, table = quote(str(self.column)), quote(self.model._meta.db_table)
        # Names come from the model. Both ``max`` and ``+`` of NULL are NULL.
        last = f"SELECT max({column}) FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608
        return f"max(%s, coalesce(({last}), 0) + 1)"


def settled_before(rows: QuerySet[Any], field: str) -> int:
    """A number below which the rows have all that they will ever have.

    Read it before the rows.
    """
    connection = connections[rows.db]
    if not _has_xids(connection):
        last: int | None = rows.order_by().aggregate(last=Max(field))["last"]
        return 0 if last is None else last + 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        [oldest] = cursor.fetchone()
    return int(oldest) + _number_of_cluster(rows.db)


def _has_xids(connection: Any) -> bool:
    return bool(connection.vendor == "postgresql")


@cache
def _number_of_cluster(alias: str) -> int:
    """Larger for a cluster that was created later, whose transactions count from the start again.

    Standbys have that of their primary.
    """
    with connections[alias].cursor() as cursor:
        cursor.execute(f"SELECT {_CLUSTER} FROM pg_control_system()")  # noqa: S608
        [number] = cursor.fetchone()
    return int(number)


def _microseconds() -> int:
    return time.time_ns() // 1000
