"""What the benchmark says while it works."""

import sys


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
