"""The GraphQL enum of how runs end."""

import graphene

from scripts_engine.models import RunStatus


class RunStatusEnum(graphene.Enum):
    """How a run ended, or that it has not."""

    class Meta:
        name = "RunStatus"

    Succeeded = RunStatus.SUCCEEDED.value
    Failed = RunStatus.FAILED.value
    TimedOut = RunStatus.TIMED_OUT.value
    OutOfMemory = RunStatus.OUT_OF_MEMORY.value
    Queued = RunStatus.QUEUED.value
    Running = RunStatus.RUNNING.value
    Lost = RunStatus.LOST.value
    Cancelled = RunStatus.CANCELLED.value

    @property
    def description(self) -> str:
        return {
            RunStatus.SUCCEEDED.value: "The script returned a reply.",
            RunStatus.FAILED.value: "The script raised an error, or its reply was not valid.",
            RunStatus.TIMED_OUT.value: "The script exceeded its time limit.",
            RunStatus.OUT_OF_MEMORY.value: "The script exceeded its memory limit.",
            RunStatus.QUEUED.value: "The run waits in the queue.",
            RunStatus.RUNNING.value: "A queued run that is running now.",
            RunStatus.LOST.value: "The server ended during the run, or lost the database.",
            RunStatus.CANCELLED.value: "The run was taken out of the queue before it started.",
        }[self.value]
