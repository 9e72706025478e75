"""Shows on a terminal how far long work is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(title: str, steps: int) -> Iterator[Callable[[], None]]:
    """The function that is called after each step. Shows nothing in a pipe."""
    if not steps or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415  Takes long to import.
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=steps)
        yield lambda: shown.advance(task)
