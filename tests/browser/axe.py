"""Checks pages with axe-core."""

from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

AXE = Path(__file__).resolve().parent / "node_modules" / "axe-core" / "axe.min.js"
GRAVE = {"serious", "critical"}

# Nothing of ours or of Unfold's is left out so far: rule, selector, and why it cannot be mended.
EXCEPTIONS: tuple[tuple[str, str, str], ...] = ()

_RUN = """
async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    return found.violations.flatMap((violation) => violation.nodes.map((node) => ({
        rule: violation.id,
        impact: node.impact || violation.impact,
        help: violation.help,
        target: node.target.flat().join(" "),
        html: node.html.slice(0, 200),
        summary: node.failureSummary.replace(/\\s+/g, " ").slice(0, 300),
    })));
}
"""


@cache
def _axe() -> str:
    return AXE.read_text()


def findings(page: Page) -> list[str]:
    """What is seriously wrong with the page for who uses a keyboard or a screen reader.

    After a click that leads to another page, wait for something that only that page has.
    """
    page.wait_for_load_state()
    # Half-way through a transition colours are of neither state.
    page.add_style_tag(content="*, ::before, ::after { transition: none !important; }")
    page.evaluate(_axe())
    return [
        _line(page, finding)
        for finding in page.evaluate(_RUN)
        if finding["impact"] in GRAVE and not _is_excepted(finding)
    ]


def _is_excepted(finding: dict[str, Any]) -> bool:
    return any(
        finding["rule"] == rule and selector in finding["target"]
        for rule, selector, _ in EXCEPTIONS
    )


def _line(page: Page, finding: dict[str, Any]) -> str:
    return (
        f"{finding['rule']} ({finding['impact']}) at {finding['target']}\n"
        f"    {finding['summary']}\n    {finding['html']}"
    )
