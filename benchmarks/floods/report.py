"""Result tables in Markdown, printed after each flood."""

from collections.abc import Sequence

from benchmarks.floods.figures import Result, Summary

BESIDE = (
    "flood",
    "what others ask for",
    "quiet: median ms",
    "worst ms",
    "flooded: median ms",
    "worst ms",
    "median ratio",
    "not 2xx",
    "goals missed",
)
FLOODS = ("flood", "calls/s", "what it got", "well again after", "processors in use before")


def beside_header() -> str:
    return _header(BESIDE, texts=2)


def beside_lines(result: Result) -> str:
    """The responses to others during the flood."""
    return "\n".join(
        _line(
            result.flood,
            each.probe,
            f"{each.quiet.median_ms:.1f}",
            f"{each.quiet.worst_ms:.0f}",
            f"{each.flooded.median_ms:.1f}",
            f"{each.flooded.worst_ms:.0f}",
            f"{each.median_ratio:.1f}",
            _failures(each.flooded),
            ", ".join(each.missed_goals) or "none",
        )
        for each in result.comparisons
    )


def floods_table(results: Sequence[Result]) -> str:
    """The responses to the floods themselves."""
    lines = [
        _line(
            result.flood,
            f"{result.tally.per_second:.0f}",
            _counts(result.tally.outcomes),
            "no" if result.recovered_seconds is None else f"{result.recovered_seconds:.1f} s",
            f"{result.busy_percent:.0f} %",
        )
        for result in results
    ]
    return "\n".join([_header(FLOODS, texts=1), *lines])


def verdict(results: Sequence[Result]) -> str:
    if not results:
        return "No flood was measured."
    broken = [result.flood for result in results if any(c.missed_goals for c in result.comparisons)]
    if not broken:
        return f"The goals hold beside all {len(results)} floods."
    return f"Goals are missed beside {len(broken)} of {len(results)} floods: {', '.join(broken)}."


def _failures(summary: Summary) -> str:
    if not summary.failures:
        return "0 %"
    return f"{100 * summary.failed_share:.0f} % ({_counts(summary.failures)})"


def _counts(outcomes: dict[str, int]) -> str:
    by_count = sorted(outcomes.items(), key=lambda item: -item[1])
    return ", ".join(f"{name}: {count:,}" for name, count in by_count) or "nothing"


def _header(names: Sequence[str], *, texts: int) -> str:
    rule = ["---"] * texts + ["--:"] * (len(names) - texts)
    return f"{_line(*names)}\n{_line(*rule)}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
