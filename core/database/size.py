"""How large the database is."""

from django.db import connection

_STATEMENTS = {
    "postgresql": "SELECT pg_database_size(current_database())",
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
}


def database_bytes() -> int:
    """The size of the database, without write-ahead logs.

    Raises ``DatabaseError`` where the database's user may not ask.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STATEMENTS[connection.vendor])
        [size] = cursor.fetchone()
    return int(size)
