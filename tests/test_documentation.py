"""What the documentation claims is there."""

import re
from pathlib import Path

import pytest

from scripts_engine.sandbox.limits import RESERVED_NAMES, RESERVED_PREFIXES

ROOT = Path(__file__).resolve().parent.parent
TESTS = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
TEST_FILES = {
    str(path.relative_to(ROOT / "tests").with_suffix("")) for path in (ROOT / "tests").rglob("*.py")
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def variables_read() -> set[str]:
    """The environment variables that the settings read."""
    files = ("settings.py", "environment.py", "secret_keys.py")
    source = "\n".join((ROOT / "config" / file).read_text() for file in files)
    calls = r'(?:env\.\w+|choice|switch|integers?|networks|required_in_production)\(\s*"([A-Z_]+)"'
    return set(re.findall(calls, source))


def guarantees() -> list[str]:
    """The tests that docs/security.md names as proof."""
    page = (ROOT / "docs" / "security.md").read_text()
    table = page.split("## Guarantees")[1].split("## Numbers")[0]
    proofs = [line.split("|")[3] for line in table.splitlines() if line.startswith("| ")][1:]
    return [name for proof in proofs for name in re.findall(r"`([\w/]+)`", proof)]


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()

    assert len(variables_read()) > 20
    assert {name for name in variables_read() if f"`{name}`" not in page} == set()


def test_every_documented_variable_is_read() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)}

    assert documented - variables_read() == set()


def test_every_header_that_a_script_may_not_set_is_documented() -> None:
    page = (ROOT / "docs" / "lua.md").read_text().lower()
    families = [f"{prefix}…" for prefix in RESERVED_PREFIXES]

    named = [f"`{name}`" for name in (*RESERVED_NAMES.split(), *families)]
    assert [name for name in named if name not in page] == []


def test_guarantees_are_found() -> None:
    assert len(guarantees()) > 15


@pytest.mark.parametrize("name", guarantees())
def test_a_guarantee_names_tests_that_exist(name: str) -> None:
    is_function = f"def {name}(" in TESTS
    is_file = any(file == name or file.endswith(f"/{name}") for file in TEST_FILES)
    is_folder = (ROOT / name).is_dir() or (ROOT / "tests" / name).is_dir()

    assert is_function or is_file or is_folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())

    assert [target for target in targets if not (page.parent / target).exists()] == []
