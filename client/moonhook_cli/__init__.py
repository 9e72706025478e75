"""The command-line client of Moonhook."""

import sys

__version__ = "0.1.0"

# httpx would import its own command line, and with it rich and pygments, where they are installed.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
