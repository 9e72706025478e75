"""Problem documents: the codes of the queue."""

from enum import StrEnum
from http import HTTPStatus

from core.http.problems import Meaning, register_problems


class QueueProblem(StrEnum):
    QUEUE_FULL = "queue-full"


def register() -> None:
    register_problems(
        {
            QueueProblem.QUEUE_FULL: Meaning(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Queue full",
                "Too many runs wait in the queue. This one was not queued; try again.",
            ),
        }
    )
