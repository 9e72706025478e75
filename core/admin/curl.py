"""Commands to paste into any POSIX shell."""

import json
import shlex


def curl(address: str, *options: tuple[str, ...]) -> str:
    """A call of curl, each group of options on a line of its own."""
    words = [("curl", "-sS", address), *options]
    return " \\\n  ".join(shlex.join(group) for group in words)


def json_body(value: object) -> tuple[tuple[str, ...], ...]:
    """The options that send it."""
    return ("-H", "Content-Type: application/json"), ("-d", json.dumps(value, ensure_ascii=False))
