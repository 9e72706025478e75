"""Problem documents: the codes of uploads for plans."""

from enum import StrEnum
from http import HTTPStatus

from core.http.problems import Meaning, register_problems


class BlobProblem(StrEnum):
    DIGEST_MISMATCH = "digest-mismatch"


def register() -> None:
    register_problems(
        {
            BlobProblem.DIGEST_MISMATCH: Meaning(
                HTTPStatus.BAD_REQUEST,
                "Digest mismatch",
                "The SHA-256 of the body is not the one in the address. Nothing was kept.",
            ),
        }
    )
