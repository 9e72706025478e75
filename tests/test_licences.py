"""docs/licences.md names what requirements/runtime.txt installs."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Whoever distributes Moonhook has to know before one of these comes in.
COPYLEFT = re.compile(r"\b(AGPL|GPL|General Public|Affero)", re.IGNORECASE)


def rows() -> list[list[str]]:
    lines = (ROOT / "docs" / "licences.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_the_page_is_as_new_as_the_lock_file() -> None:
    lock_file = (ROOT / "requirements" / "runtime.txt").read_text()
    locked = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\\\]+)", lock_file, re.MULTILINE)

    assert len(locked) > 40
    assert [tuple(row[:2]) for row in rows()] == locked


def test_every_licence_is_stated() -> None:
    assert [row for row in rows() if row[2] in {"", "not stated"}] == []


def test_no_dependency_is_under_a_strong_copyleft() -> None:
    assert [row for row in rows() if not has_a_choice_without_copyleft(row[2])] == []


def has_a_choice_without_copyleft(licences: str) -> bool:
    return any(not COPYLEFT.search(each) for each in re.split(r", | OR ", licences))
