"""Draws a flame graph of a web worker's samples as an SVG without scripts.

    py-spy record --gil --function --format raw --rate 500 --duration 10 --output raw --pid WORKER
    python benchmarks/flame_graph.py raw > flame.svg

Each line of the input is a stack and its number of samples (Brendan Gregg's folded format). Only
frames above ROOT are drawn; the width of a frame is its share of the samples.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

ROOT = "MoonhookWorker.handle (core/server/worker.py"
WIDTH, ROW, MARGIN = 1400, 17, 24
LEAST_WIDTH = 2.0
LETTER_WIDTH = 6.4
# Whose code it is, by a part of the frame's text: the first that fits.
COLOURS = (
    ("config/", "#7fb3a6"),
    ("hooks/", "#4f9d8b"),
    ("scripts_engine/", "#2f8373"),
    ("accounts/", "#5fae94"),
    ("gunicorn/", "#d9a05b"),
    ("django/", "#c9c26b"),
    ("", "#c8c8c8"),
)
# Django puts one of these around every middleware: a level that says nothing.
LEFT_OUT = ("convert_exception_to_response",)


_LINE = re.compile(r":\d+\)$")


@dataclass
class Frame:
    name: str
    samples: int = 0
    callees: dict[str, Frame] = field(default_factory=dict)

    def callee(self, name: str) -> Frame:
        return self.callees.setdefault(name, Frame(name))

    def depth(self) -> int:
        return 1 + max((each.depth() for each in self.callees.values()), default=0)


def read(path: Path) -> Frame:
    root = Frame(f"{ROOT})")
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        start = next((i for i, name in enumerate(frames) if name.startswith(ROOT)), None)
        if start is None:
            continue
        frame = root
        frame.samples += int(count)
        for name in frames[start + 1 :]:
            if not name.startswith(LEFT_OUT):
                frame = frame.callee(_LINE.sub(")", name))
                frame.samples += int(count)
    return root


def drawn(frame: Frame, left: float, level: int, scale: float, height: int) -> Iterator[str]:
    width = frame.samples * scale
    if width < LEAST_WIDTH:
        return
    colour = next(colour for part, colour in COLOURS if part in frame.name)
    top = height - MARGIN - (level + 1) * ROW
    share = 100 * frame.samples * scale / (WIDTH - 2 * MARGIN)
    text = frame.name[: max(0, int((width - 6) / LETTER_WIDTH))]
    yield (
        f'<g><title>{escape(frame.name)}: {share:.1f} %</title><rect x="{left:.1f}" y="{top}" '
        f'width="{width - 0.5:.1f}" height="{ROW - 1}" fill="{colour}"/>'
    )
    if len(text) > 2:
        yield f'<text x="{left + 3:.1f}" y="{top + 12}">{escape(text)}</text>'
    yield "</g>"
    for callee in sorted(frame.callees.values(), key=lambda each: each.name):
        yield from drawn(callee, left, level + 1, scale, height)
        left += callee.samples * scale


def picture(root: Frame) -> str:
    height = root.depth() * ROW + 2 * MARGIN
    scale = (WIDTH - 2 * MARGIN) / root.samples
    frame = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {frame}'
    return "\n".join(
        (
            f'{start} font-family="monospace" font-size="10.5">',
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            *drawn(root, MARGIN, 0, scale, height),
            "</svg>",
        )
    )


if __name__ == "__main__":
    sys.stdout.write(picture(read(Path(sys.argv[1]))) + "\n")
