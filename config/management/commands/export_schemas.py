from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.graphql import admin_schema, user_schema

DIRECTORY = Path(settings.BASE_DIR) / "tests" / "snapshots"


class Command(BaseCommand):
    help = "Writes both GraphQL schemas into tests/snapshots/, where changes of them show."

    def handle(self, *args: Any, **options: Any) -> None:
        for name, schema in (("user", user_schema.schema), ("admin", admin_schema.schema)):
            path = DIRECTORY / f"{name}.graphql"
            path.write_text(f"{schema}\n")
            self.stdout.write(f"wrote {path.relative_to(settings.BASE_DIR)}")
