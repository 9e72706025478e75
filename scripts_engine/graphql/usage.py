"""Usage in GraphQL: what the organisation's runs used, by day, script and hook."""

from datetime import UTC, datetime, time

import graphene
from django.utils import timezone
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_organisation, scoped
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import as_peers, as_utc, peers_of
from scripts_engine.flows.scripts import scripts_by_id
from scripts_engine.graphql.types import ScriptType
from scripts_engine.models import DailyUsage, Script
from scripts_engine.models.usage import NO_HOOK
from scripts_engine.usage import KEPT_DAYS, days_between, first_kept_day

MAX_ROWS = 10_000
_SCRIPTS = "_scripts_of_usage"


class UsageType(graphene.ObjectType):
    """What the runs of a script, by one of its hooks or without one, used on a day of UTC."""

    class Meta:
        name = "Usage"

    day = graphene.Date(required=True, description="The day of UTC on which the runs started.")
    script_id = graphene.ID(required=True, description="The script's id.")
    script = graphene.Field(
        ScriptType,
        description="The script, also a deleted one; null when nothing of it is kept any more.",
    )
    hook_id = graphene.ID(description="The HookID. Null: the runs without a hook.")
    calls = graphene.Int(
        required=True,
        description="Calls and other work, with all attempts at it as one. Without test events, "
        "try-outs of sources that are not saved, and what was cancelled or refused.",
    )
    failures = graphene.Int(required=True, description="Those that failed, after the last attempt.")
    bytes = graphene.Float(
        required=True, description="Of payloads and replies, in whole bytes; each payload once."
    )
    cpu_seconds = graphene.Float(required=True, description="CPU time of all attempts, in s.")

    @staticmethod
    def resolve_cpu_seconds(row: DailyUsage, info: GraphQLResolveInfo) -> float:
        return round(row.cpu_seconds, 6)

    @staticmethod
    def resolve_hook_id(row: DailyUsage, info: GraphQLResolveInfo) -> str | None:
        return None if row.hook_id == NO_HOOK else str(row.hook_id)

    @staticmethod
    def resolve_script(row: DailyUsage, info: GraphQLResolveInfo) -> Script | None:
        """Loads the scripts of all rows that were loaded with this one."""
        if not hasattr(row, _SCRIPTS):
            peers = peers_of(row)
            ids = {peer.script_id for peer in peers}
            found = scripts_by_id(caller_organisation(info), ids)
            as_peers(found.values())
            for peer in peers:
                setattr(peer, _SCRIPTS, found)
        loaded: dict[object, Script] = getattr(row, _SCRIPTS)
        return loaded.get(row.script_id)


class UsageQuery(graphene.ObjectType):
    usage = graphene.List(
        graphene.NonNull(UsageType),
        required=True,
        description=(
            f"What the organisation used in the last {KEPT_DAYS} days, by day, script and hook, "
            "oldest first. Runs are counted when they have ended, within a few minutes. At most "
            f"{MAX_ROWS:,} rows."
        ),
        since=graphene.DateTime(
            required=True, description="From this day of UTC on, the whole of it."
        ),
        until=graphene.DateTime(description="Before this time. Default: now."),
    )

    @staticmethod
    def resolve_usage(
        root: None, info: GraphQLResolveInfo, since: datetime, until: datetime | None = None
    ) -> list[DailyUsage]:
        start = as_utc(since, "since")
        end = timezone.now() if until is None else as_utc(until, "until")
        _check_range(start, end, is_end_given=until is not None)
        rows = scoped(info, DailyUsage).between(*days_between(start, end))
        found = as_peers(rows.order_by("day", "script_id", "hook_id")[: MAX_ROWS + 1])
        if len(found) > MAX_ROWS:
            message = f"These are more than {MAX_ROWS:,} rows. Ask for fewer days at a time."
            raise GraphQLProblem(GraphQLCode.LIMIT_EXCEEDED, message)
        return found


def _check_range(start: datetime, end: datetime, *, is_end_given: bool) -> None:
    first = datetime.combine(first_kept_day(), time(), UTC)
    if start < first:
        message = f"Usage is kept for {KEPT_DAYS} days: since {first:%Y-%m-%d} (UTC)."
        raise GraphQLProblem(GraphQLCode.BAD_USER_INPUT, message, field="since")
    if start >= end:
        message, field = (
            ("This must be later than since.", "until")
            if is_end_given
            else ("This is not in the past.", "since")
        )
        raise GraphQLProblem(GraphQLCode.BAD_USER_INPUT, message, field=field)
