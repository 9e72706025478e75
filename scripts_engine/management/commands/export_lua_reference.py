from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from scripts_engine.lua_reference.markdown import with_tables

ROOT = Path(settings.BASE_DIR)
PAGE = ROOT / "docs" / "lua.md"


class Command(BaseCommand):
    help = "Writes the tables of docs/lua.md from the Lua reference; its prose stays as it is."

    def handle(self, *args: Any, **options: Any) -> None:
        PAGE.write_text(with_tables(PAGE.read_text()))
        self.stdout.write(f"wrote {PAGE.relative_to(ROOT)}")
