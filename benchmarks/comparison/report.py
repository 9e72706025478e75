"""Result tables in Markdown."""

from collections.abc import Iterable, Sequence
from statistics import median

from benchmarks.comparison.memory import Memory
from benchmarks.comparison.rounds import Row
from benchmarks.comparison.targets import Target

RATES = ("", "req/s", "min..max", "p50 ms", "p99 ms", "p99 / p50", "ratio", "p50 − base, ms")
ERRORS = ("not 2xx", "socket errors")
MEMORY = ("", "processes", "RSS idle", "PSS idle", "RSS after", "PSS after", "PSS each")


def rate_table(targets: Sequence[Target], rows: Sequence[Row]) -> str:
    """Medians over the rounds, for one number of connections."""
    figures = {target.name: _Figures(target.name, rows) for target in targets}
    lines = []
    for target in targets:
        own, base = figures[target.name], figures[target.base]
        lines.append(
            (
                target.name,
                f"{own.rps:,.0f}",
                f"{own.slowest:,.0f}..{own.fastest:,.0f}",
                f"{own.p50_ms:.2f}",
                f"{own.p99_ms:.2f}",
                f"{own.p99_ms / own.p50_ms:.1f}",
                f"{own.rps / base.rps:.3f}",
                f"{own.p50_ms - base.p50_ms:+.2f}",
                f"{own.not_2xx}",
                f"{own.socket_errors}",
            )
        )
    return _table((*RATES, *ERRORS), lines)


class _Figures:
    """The figures of one target."""

    def __init__(self, target: str, rows: Sequence[Row]) -> None:
        samples = [row.sample for row in rows if row.target == target]
        rates = [sample.rps for sample in samples]
        self.rps, self.slowest, self.fastest = median(rates), min(rates), max(rates)
        self.p50_ms = median(sample.p50_ms for sample in samples)
        self.p99_ms = median(sample.p99_ms for sample in samples)
        self.not_2xx = sum(sample.not_2xx for sample in samples)
        self.socket_errors = sum(sample.socket_errors for sample in samples)


def bases(targets: Iterable[Target]) -> str:
    """Describes the bases of the ratios."""
    return "; ".join(dict.fromkeys(target.base for target in targets))


def busy_line(rows: Sequence[Row]) -> str:
    busy = [row.busy_percent for row in rows]
    return f"Processors in use before a run: median {median(busy):.0f} %, most {max(busy):.0f} %"


def memory_table(idle: dict[str, Memory], after: dict[str, Memory]) -> str:
    """MiB for each server."""
    lines = []
    for name, now in after.items():
        before = idle[name]
        each = None if now.pss_mib is None else now.pss_mib / max(1, now.processes)
        lines.append(
            (
                name,
                f"{before.processes} → {now.processes}",
                f"{before.rss_mib:.1f}",
                _mib(before.pss_mib),
                f"{now.rss_mib:.1f}",
                _mib(now.pss_mib),
                _mib(each),
            )
        )
    return _table(MEMORY, lines)


def _mib(figure: float | None) -> str:
    return "root only" if figure is None else f"{figure:.1f}"


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---"] + ["--:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, rule, *lines])
