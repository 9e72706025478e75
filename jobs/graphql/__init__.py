"""GraphQL of schedules and of the queue, with the scopes that its fields need."""

from accounts.graphql.field_scopes import for_programs
from accounts.scopes import Scope


def register() -> None:
    read, operate, change = Scope.READ_SCRIPTS, Scope.OPERATE_QUEUE, Scope.WRITE_HOOKS
    for_programs("Query", fields={"schedules": read, "schedule": read, "nextTicks": read})
    for_programs(
        "Mutation",
        fields={
            "createSchedule": change,
            "updateSchedule": change,
            "deleteSchedule": change,
            "runScheduleNow": operate,
            "enqueueRun": operate,
            "cancelRun": operate,
            "replayRuns": operate,
            "pauseQueue": operate,
            "resumeQueue": operate,
        },
    )
    for_programs("Schedule", read, is_listed=True)
    for_programs("ScheduleTick", read)
