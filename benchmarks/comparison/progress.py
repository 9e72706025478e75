"""Progress messages of the benchmark."""

import sys


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
