"""The command-line client of Moonhook."""

from importlib.metadata import version

__version__ = version("moonhook-cli")
