"""The run storage of the organisations that use the most."""

from dataclasses import dataclass
from typing import Any

from accounts.admin.run_storage import RunStorageUse, run_storage_use
from core.admin.links import page_of

_LIMIT = 5


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    url: str
    use: RunStorageUse


def run_storage(organisations: Any) -> list[Row]:
    largest = organisations.filter(run_storage__isnull=False).order_by("-run_storage__bytes_used")
    return [Row(each.name, page_of(each), run_storage_use(each)) for each in largest[:_LIMIT]]
