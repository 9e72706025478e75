"""The versions that run here."""

import tomllib

from django.conf import settings

from core.caches import built_once


@built_once
def moonhook_version() -> str:
    """Moonhook's version, as in pyproject.toml: ``0.1.0``."""
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    return str(project["project"]["version"])
