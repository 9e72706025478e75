"""The environment of the suites."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison import postgresql
from benchmarks.comparison.moonhook import Moonhook, moonhook
from benchmarks.comparison.servers import ROOT

SQLITE = "SQLite"
POSTGRESQL = "PostgreSQL"


@dataclass(frozen=True)
class Setting:
    """``directory`` is for files of the servers; ``postgresql_url`` may be empty.

    ``earlier`` is a checkout of an earlier version, to be measured beside this one.
    """

    directory: Path
    postgresql_url: str
    tenants: int
    rows: tuple[int, ...]
    earlier: Path | None = None

    @contextmanager
    def databases(self) -> Iterator[dict[str, str]]:
        """Yields addresses of empty databases by kind; an empty address means SQLite."""
        if not self.postgresql_url:
            yield {SQLITE: ""}
            return
        with postgresql.empty_database(self.postgresql_url) as url:
            yield {SQLITE: "", POSTGRESQL: url}

    @property
    def roots(self) -> dict[str, Path]:
        """The checkouts to measure, by what to add to their targets' names."""
        return {"": ROOT} | ({", earlier": self.earlier} if self.earlier else {})

    @contextmanager
    def moonhooks(self) -> Iterator[dict[str, Moonhook]]:
        """Runs each checkout on each kind of database; yields them by kind and version."""
        with ExitStack() as running:
            yield {
                f"{kind}{version}": running.enter_context(
                    moonhook(
                        f"Moonhook, {kind}{version}", self.directory, root=root, database_url=url
                    )
                )
                for version, root in self.roots.items()
                for kind, url in running.enter_context(self.databases()).items()
            }


@contextmanager
def checkout(revision: str, directory: Path) -> Iterator[Path]:
    """A git worktree of the revision, until the block ends."""
    made = directory / "earlier"
    git = ["git", "-C", ROOT, "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", made, revision], check=True)
    try:
        yield made
    finally:
        subprocess.run([*git, "remove", "--force", made], check=True)
