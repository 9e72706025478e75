from datetime import UTC, datetime

from core.graphql.graphql_problem import GraphQLProblem

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def as_utc(moment: datetime, field: str) -> datetime:
    """The moment in UTC; one without an offset is taken for UTC.

    Databases and Python end at different years: what is beyond all reason is BAD_USER_INPUT.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not EARLIEST <= aware <= LATEST:
        raise GraphQLProblem("BAD_USER_INPUT", "This time is out of range.", field=field)
    return aware.astimezone(UTC)
