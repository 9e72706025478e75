"""Pictures of counts over time: a column of stacked bars for each part of the time."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

# Of a picture, in its own units.
BAR_WIDTH, HEIGHT, LOWEST_BAR = 8, 40, 3


class Bar(NamedTuple):
    kind: str
    x: int
    y: int
    height: int
    title: str


class Bars(NamedTuple):
    bars: Sequence[Bar]
    """Of each column, the oldest first, one above the other."""
    width: int
    height: int = HEIGHT


def bars_of(columns: Sequence[Mapping[str, int]], titles: Sequence[str] = ()) -> Bars:
    """The columns' counts by kind, lowest first; ``titles`` say what each column is."""
    most = max((sum(counts.values()) for counts in columns), default=0)
    bars = []
    for number, counts in enumerate(columns):
        y, title = HEIGHT, titles[number] if titles else ""
        for kind, count in counts.items():
            if count:
                height = min(y, max(LOWEST_BAR, round(HEIGHT * count / most)))
                y -= height
                bars.append(Bar(kind, number * BAR_WIDTH, y, height, title))
    return Bars(bars, len(columns) * BAR_WIDTH)
