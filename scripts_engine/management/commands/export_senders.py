from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from scripts_engine.senders.markdown import page

ROOT = Path(settings.BASE_DIR)
PAGE = ROOT / "docs" / "senders.md"


class Command(BaseCommand):
    help = "Writes docs/senders.md from the table of senders."

    def handle(self, *args: Any, **options: Any) -> None:
        PAGE.write_text(page())
        self.stdout.write(f"wrote {PAGE.relative_to(ROOT)}")
