"""How much there is of everything."""

from dataclasses import dataclass

from django.contrib.admin import AdminSite
from django.db.models import Model
from django.http import HttpRequest

from accounts.admin.links import list_of
from accounts.models import ApiKey, DeviceToken, Organisation, User
from config.admin_home.rows import rows_of
from scripts_engine.models import Hook, Script
from sessions_api.models import Session


@dataclass(frozen=True, slots=True)
class Count:
    title: str
    number: int
    url: str
    icon: str


_SHOWN: tuple[tuple[type[Model], str, dict[str, bool]], ...] = (
    (Script, "code", {}),
    (Hook, "webhook", {}),
    (ApiKey, "key", {"revoked_at__isnull": True}),
    (User, "group", {}),
    (DeviceToken, "smartphone", {"revoked_at__isnull": True}),
    (Session, "login", {}),
    (Organisation, "domain", {}),
)


@dataclass(frozen=True, slots=True)
class Inventory:
    numbers: dict[type[Model], int]

    @classmethod
    def read(cls, request: HttpRequest, site: AdminSite) -> "Inventory":
        """What is in use: without revoked keys and devices."""
        return cls(
            {
                model: rows_of(request, site, model).filter(**in_use).count()
                for model, _, in_use in _SHOWN
            }
        )

    def has(self, model: type[Model]) -> bool:
        return self.numbers[model] > 0

    @property
    def counts(self) -> tuple[Count, ...]:
        return tuple(
            Count(str(model._meta.verbose_name_plural), self.numbers[model], list_of(model), icon)
            for model, icon, _ in _SHOWN
        )
