"""What a subquery finds, as one column of each row: saves a statement of its own."""

from typing import Any

from django.db.models import IntegerField, JSONField, Subquery


class CountOf(Subquery):
    """The number of rows that the subquery finds; its slice bounds the count."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS _rows)"
    output_field = IntegerField()


class ListOf(Subquery):
    """A list of what the subquery finds in its one column, ``found``: JSON, in any order."""

    template = "(SELECT json_group_array(json(_rows.found)) FROM (%(subquery)s) AS _rows)"
    output_field = JSONField()

    def as_postgresql(self, compiler: Any, connection: Any) -> Any:
        return self.as_sql(
            compiler,
            connection,
            template="(SELECT coalesce(jsonb_agg(_rows.found), '[]') FROM (%(subquery)s) AS _rows)",
        )
