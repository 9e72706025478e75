"""How the database would answer captured statements."""

from django.db import connection


def plan_of(statement: str) -> str:
    """The plan of a captured statement; PostgreSQL must not prefer to scan the small table."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
        explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
        cursor.execute(explain + statement)
        return str(cursor.fetchall())


def scans_an_organisation(statement: str) -> bool:
    """Whether SQLite would read all runs of an organisation.

    Not asked of PostgreSQL, whose plans depend on how many runs there are.
    """
    return connection.vendor == "sqlite" and "bytes (organisation_id=?)" in plan_of(statement)
