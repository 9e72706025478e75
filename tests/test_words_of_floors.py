"""The lower floors do not speak of what the upper ones do: no script, run, hook or queue entry.

What they must know of it is registered at start.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# As words of text and as parts of names: a script, a_script, Script, ScriptId, SCRIPT_ID.
OUR_THINGS = (
    r"(?<![A-Za-z])(?:[Ww]eb)?(?:[Ss]cript|[Hh]ook|[Ll]ua)s?(?![a-z])|(?<![A-Z])(?:SCRIPT|HOOK|LUA)"
    r"|[Qq]ueue[ _]?[Ee]ntr|[Dd]ead[ _-]letter|\b[Ss]chedules?\b"
)
# The verb "run" is anybody's.
OUR_RUNS = (
    r"\bRuns?(?:[A-Z]|\.)|\bruns?_\w+|\bRUNS?_"
    r"|\b(?:an?|the|this|each|every|no|of|its|old|oldest|one|queued|recorded) runs?\b"
)
WORDS_OF_APPS = re.compile(f"{OUR_THINGS}|{OUR_RUNS}")
# accounts keep an organisation's settings for its runs.
WORDS_ABOVE_ACCOUNTS = re.compile(OUR_THINGS)

# English, and the words of others.
ALLOWED = (
    "run_after",
    "run_ready",
    "run_task",
    "run_through_outages",
    # What a browser runs.
    "Scripts come only from static files",
    "inline scripts",
    '"script-src',
    "from django.forms.widgets import Script",
    'Script("moonhook/copy.js"',
    # WSGI.
    "SCRIPT_NAME",
)
# Lines of accounts that name things of the apps above: texts of the interface and limits, by file.
# The numbers may only fall.
KNOWN = {
    "accounts/admin/api_keys.py": 1,
    "accounts/admin/auth_events.py": 1,
    "accounts/admin/organisations.py": 2,
    "accounts/graphql/programs/types.py": 1,
    "accounts/models/auth_event.py": 1,
    "accounts/models/organisation.py": 5,
    "accounts/rate_limits/windows.py": 2,
}
# The interface names scopes and roles; their texts explain what they open in the apps above.
TEXTS_OF_SCOPES = "accounts/scopes.py"


def lines_with(words: re.Pattern[str], path: Path) -> list[str]:
    found = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        rest = line
        for phrase in ALLOWED:
            rest = rest.replace(phrase, "")
        if words.search(rest):
            found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    return found


def files_of(floor: str) -> Iterator[Path]:
    for path in sorted((ROOT / floor).rglob("*.py")):
        if "migrations" not in path.parts:
            yield path


def test_core_does_not_name_what_apps_do() -> None:
    assert [line for path in files_of("core") for line in lines_with(WORDS_OF_APPS, path)] == []


def test_accounts_name_what_apps_above_do_only_where_it_is_known() -> None:
    found = {
        str(path.relative_to(ROOT)): lines
        for path in files_of("accounts")
        if str(path.relative_to(ROOT)) != TEXTS_OF_SCOPES
        and (lines := lines_with(WORDS_ABOVE_ACCOUNTS, path))
    }

    more = {name: lines for name, lines in found.items() if len(lines) != KNOWN.get(name, 0)}
    assert more == {}
    assert found.keys() == KNOWN.keys()


@pytest.mark.parametrize(
    "line",
    [
        "# The script is not known.",
        "class HookProblem(StrEnum):",
        'SCRIPT_FAILED = "failed"',
        "script_id: UUID",
        "from x import RunStorage",
        "the oldest run is deleted",
        "run_id: UUID",
        "a queue entry",
    ],
)
def test_our_words_are_recognised(line: str) -> None:
    assert WORDS_OF_APPS.search(line)


@pytest.mark.parametrize(
    "line",
    ["description=", "JavaScript", "moonhook_build_info", "sys.excepthook", "Code that runs twice"],
)
def test_other_words_are_not_ours(line: str) -> None:
    assert WORDS_OF_APPS.search(line) is None
