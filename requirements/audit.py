"""`make audit`: known vulnerabilities of the locked dependencies.

Asks the package index that pip is configured with, through PyPI's JSON API; an index that does not
have it is replaced by pip-audit's OSV service. This file contains no address.

Exit status: 0 none known, 1 some found, 2 neither could be reached and nothing was checked.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from pip._internal.commands import create_command

LOCK_FILES = ("runtime.txt", "dev.txt", "client.txt")
ANSWER_SECONDS = 10


class NotReached(Exception):
    """A source of vulnerabilities did not answer, or not in its format."""


@dataclass(frozen=True)
class Index:
    """The root of a package index, which may contain credentials, and its CA certificates."""

    root: str
    ca_file: str | None

    def release(self, session: requests.Session, name: str, version: str) -> dict[str, Any] | None:
        """What the index knows of a release, or ``None``. Raises ``NotReached``."""
        address = f"{self.root}/pypi/{name}/{version}/json"
        try:
            answer = session.get(address, timeout=ANSWER_SECONDS, verify=self.ca_file or True)
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            release: dict[str, Any] = answer.json()
        except requests.RequestException as error:
            # The message would contain the address, and with it credentials.
            raise NotReached(type(error).__name__) from None
        return release


def configured_index() -> Index:
    """The index of pip's files, environment and defaults, as ``pip install`` resolves them."""
    options = create_command("install").parser.get_default_values()
    root = options.index_url.rstrip("/").removesuffix("/simple")
    return Index(root, options.cert)


def locked_releases(lock_file: Path) -> list[tuple[str, str]]:
    return re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", lock_file.read_text(), re.MULTILINE)


def found_by_index(index: Index, lock_file: Path) -> list[str]:
    """One line for each known vulnerability. Raises ``NotReached``."""
    lines, unknown = [], []
    with requests.Session() as session:
        for name, version in locked_releases(lock_file):
            release = index.release(session, name, version)
            if release is None:
                unknown.append(f"{name} {version}")
                continue
            lines += [
                f"{name} {version}: {each['id']}, fixed in {', '.join(each['fixed_in']) or 'none'}"
                for each in release.get("vulnerabilities") or ()
                if not each.get("withdrawn")
            ]
    if unknown:
        # An index without the JSON API answers 404 to everything.
        raise NotReached(f"does not know {len(unknown)} releases, such as {unknown[0]}")
    return lines


def found_by_osv(lock_file: Path) -> list[str]:
    """One line for each known vulnerability. Raises ``NotReached``."""
    command = [sys.executable, "-m", "pip_audit", "--vulnerability-service", "osv"]
    command += ["--require-hashes", "--disable-pip", "--format", "json"]
    command += ["--timeout", str(ANSWER_SECONDS), "--requirement", str(lock_file)]
    audit = subprocess.run(command, check=False, capture_output=True, text=True)
    try:
        report = json.loads(audit.stdout)
    except ValueError:
        # The last line of a traceback contains the address.
        raise NotReached(f"pip-audit ended with status {audit.returncode}") from None
    return [
        f"{each['name']} {each['version']}: {known['id']}, "
        f"fixed in {', '.join(known['fix_versions']) or 'none'}"
        for each in report["dependencies"]
        for known in each.get("vulns", ())
    ]


def audit(lock_files: list[Path]) -> int:
    index = configured_index()
    sources = {
        "pip's index": lambda lock_file: found_by_index(index, lock_file),
        "OSV": found_by_osv,
    }
    for source, find in sources.items():
        try:
            found = {lock_file.name: find(lock_file) for lock_file in lock_files}
        except NotReached as error:
            print(f"audit: {source}: {error}", file=sys.stderr)
            continue
        for name, lines in found.items():
            print(f"audit: {name}, by {source}: {len(lines)} known vulnerabilities")
            print("".join(f"  {line}\n" for line in lines), end="")
        return 1 if any(found.values()) else 0
    print("audit: no vulnerability index can be reached: NOTHING WAS CHECKED", file=sys.stderr)
    return 2


if __name__ == "__main__":
    files = sys.argv[1:] or [Path(__file__).with_name(name) for name in LOCK_FILES]
    sys.exit(audit([Path(file) for file in files]))
