"""How many examples hypothesis tries: a fifth in everyday runs, all of them in ``.ci/run``."""

import os

# Each run draws others, so that everyday runs try all kinds over time.
_SHARE = 1 if os.environ.get("ALL_EXAMPLES") else 5


def examples(count: int) -> int:
    return count // _SHARE
