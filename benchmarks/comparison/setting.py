"""The environment of the suites."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison import postgresql

SQLITE = "SQLite"
POSTGRESQL = "PostgreSQL"


@dataclass(frozen=True)
class Setting:
    """``directory`` is for files of the servers; ``postgresql_url`` may be empty."""

    directory: Path
    postgresql_url: str
    tenants: int
    rows: tuple[int, ...]

    @contextmanager
    def databases(self) -> Iterator[dict[str, str]]:
        """Yields addresses of empty databases by kind; an empty address means SQLite."""
        if not self.postgresql_url:
            yield {SQLITE: ""}
            return
        with postgresql.empty_database(self.postgresql_url) as url:
            yield {SQLITE: "", POSTGRESQL: url}
