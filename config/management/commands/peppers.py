from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from accounts.management.json_output import JsonCommand
from core.encryption import DecryptionError, PepperUse, pepper_use, reencrypt


class Command(JsonCommand):
    help = "Shows what needs each pepper, and re-encrypts secrets under the newest."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--move-secrets",
            action="store_true",
            help="re-encrypt the secrets of scripts and hooks under the newest pepper",
        )

    def perform(self, options: dict[str, Any]) -> dict[str, Any]:
        if options["move_secrets"]:
            try:
                reencrypt()
            except DecryptionError as error:
                raise CommandError(f"A secret cannot be decrypted: {error}.") from None
        return {"peppers": [_document(use) for use in pepper_use()]}

    def lines(self, document: dict[str, Any]) -> list[str]:
        return [_line(use) for use in document["peppers"]]


def _document(use: PepperUse) -> dict[str, Any]:
    return {
        "version": use.version,
        "is_configured": use.is_configured,
        **use.rows,
        "is_needed": use.is_needed,
    }


def _line(document: dict[str, Any]) -> str:
    rows = dict(document)
    version, is_configured = rows.pop("version"), rows.pop("is_configured")
    is_needed = rows.pop("is_needed")
    counts = (f"{count} {name.replace('_', ' ')}" for name, count in rows.items())
    return (
        f"{version}: {', '.join(counts).replace('api', 'API')}"
        + ("" if is_configured else "  (not configured: these are lost)")
        + ("" if is_needed else "  (not needed)")
    )
