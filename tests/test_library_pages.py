"""The pages of the two libraries: their examples print what they say, and no name is forgotten."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("scripts_engine.sandbox", "hooks.senders")


def page_of(library: str) -> str:
    return ROOT.joinpath(*library.split("."), "README.md").read_text()


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_example_of_a_library_prints_what_its_comments_say(library: str) -> None:
    [example] = re.findall(r"```python\n(.*?)```", page_of(library), re.DOTALL)
    expected = re.findall(r"\)  # (.+)", example)

    done = subprocess.run(
        [sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert expected != []
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_page_of_a_library_names_its_whole_face(library: str) -> None:
    words = set(re.findall(r"\w+", page_of(library)))
    names = {name for name in import_module(library).__all__ if not name.startswith("MAX_")}

    assert names - words == set()
