from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.api import admin_schema, user_schema

ROOT = Path(settings.BASE_DIR)
SCHEMAS = {
    ROOT / "docs/schemas/user.graphql": f"{user_schema.schema}\n",
    ROOT / "docs/schemas/admin.graphql": f"{admin_schema.schema}\n",
}


class Command(BaseCommand):
    help = "Writes the GraphQL schemas to docs/schemas, where a diff shows each change."

    def handle(self, *args: Any, **options: Any) -> None:
        for path, text in SCHEMAS.items():
            path.write_text(text)
            self.stdout.write(f"wrote {path.relative_to(ROOT)}")
