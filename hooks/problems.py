"""Problem documents: the codes of calls of hooks."""

from enum import StrEnum
from http import HTTPStatus

from core.http.problems import Meaning, register_problems


class CallProblem(StrEnum):
    INVALID_SIGNATURE = "invalid-signature"
    DUPLICATE_IN_PROGRESS = "duplicate-in-progress"


def register() -> None:
    register_problems(
        {
            CallProblem.INVALID_SIGNATURE: Meaning(
                HTTPStatus.UNAUTHORIZED,
                "Invalid signature",
                "The hook's sender did not sign this call.",
            ),
            CallProblem.DUPLICATE_IN_PROGRESS: Meaning(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Duplicate in progress",
                "The same delivery is being processed. Try again for its reply.",
            ),
        }
    )
