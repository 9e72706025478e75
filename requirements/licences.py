"""`make licences`: what is installed with Moonhook, from its own metadata, as a page."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

LOCK_FILE = Path(__file__).with_name("runtime.txt")
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\\\]+)(?: ?; ?([^\\\\]+))?", re.MULTILINE)
CLASSIFIER = "License :: OSI Approved :: "
NOT_HERE = "not installed on this platform"


def licence(package: Distribution) -> str:
    """The SPDX expression, else the classifiers, else the first line of what stands there."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [
        each.removeprefix(CLASSIFIER)
        for each in metadata.get_all("Classifier") or []
        if each.startswith(CLASSIFIER)
    ]
    if classifiers:
        return ", ".join(classifiers)
    return str(metadata.get("License") or "not stated").strip().splitlines()[0]


def row(name: str, version: str) -> str:
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return f"| {name} | {version} | {NOT_HERE} |"
    return f"| {name} | {version} | {licence(package)} |"


def main() -> None:
    print("# Licences\n")
    print("What is installed with Moonhook (`requirements/runtime.txt`), by `make licences`.\n")
    print("| package | version | licence |\n| --- | --- | --- |")
    for name, version, _ in PINNED.findall(LOCK_FILE.read_text()):
        print(row(name, version))


if __name__ == "__main__":
    main()
