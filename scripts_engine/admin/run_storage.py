"""The storage used by an organisation's runs, as a bar with figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from accounts.models import Organisation
from core.admin.display import size_text
from scripts_engine.models import RunStorage

_NEARLY_FULL_PERCENT = 90


@dataclass(frozen=True, slots=True)
class RunStorageUse:
    used: str
    limit: str
    """Empty if there is no quota."""
    percent: int
    """Of the quota; at most 100."""
    removed_before: datetime | None

    @property
    def is_nearly_full(self) -> bool:
        return self.percent >= _NEARLY_FULL_PERCENT


def run_storage_use(organisation: Organisation) -> RunStorageUse:
    return _use(organisation, getattr(organisation, "run_storage", None))


def _use(organisation: Organisation, storage: RunStorage | None) -> RunStorageUse:
    limit, used = organisation.run_bytes_limit, storage.total_bytes if storage else 0
    return RunStorageUse(
        used=size_text(used),
        limit="" if limit is None else size_text(limit),
        percent=0 if limit is None else min(100, max(0, used * 100 // limit)),
        removed_before=storage.removed_before if storage else None,
    )


def run_storage_bar(organisation: Organisation) -> SafeString:
    return _bar(run_storage_use(organisation))


def run_storage_bars(organisations: Sequence[Organisation]) -> dict[UUID, SafeString]:
    """In one statement for all."""
    stored = RunStorage.objects.in_bulk([each.pk for each in organisations])
    return {each.pk: _bar(_use(each, stored.get(each.pk))) for each in organisations}


def _bar(use: RunStorageUse) -> SafeString:
    return render_to_string("admin/parts/run_storage.html", {"use": use})
