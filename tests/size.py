"""The size of the tests that take minutes to be sure: small, or full with ``TEST_SIZE=full``.

``make test-slow`` and `.ci/run` are small, ``make soak`` is full.
"""

import os
from typing import TypeVar

Value = TypeVar("Value")

IS_FULL = os.environ.get("TEST_SIZE", "small") == "full"


def sized(*, small: Value, full: Value) -> Value:
    return full if IS_FULL else small
