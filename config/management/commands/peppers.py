from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from accounts.management.json_output import JsonCommand
from config.operations.pepper_use import pepper_use
from scripts_engine.encryption import DecryptionError
from scripts_engine.flows.reencryption import reencrypt_hooks
from scripts_engine.flows.secrets import reencrypt_secrets


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
                reencrypt_secrets()
                reencrypt_hooks()
            except DecryptionError as error:
                raise CommandError(f"A secret cannot be decrypted: {error}.") from None
        return {"peppers": [{**use._asdict(), "is_needed": use.is_needed} for use in pepper_use()]}

    def lines(self, document: dict[str, Any]) -> list[str]:
        return [
            f"{use['version']}: {use['api_keys']} API keys, {use['device_tokens']} device tokens, "
            f"{use['hooks']} hooks, {use['secrets']} secrets, "
            f"{use['signing_secrets']} signing secrets, {use['refused_calls']} refused calls, "
            f"{use['queued_calls']} queued calls"
            + ("" if use["is_configured"] else "  (not configured: these are lost)")
            + ("" if use["is_needed"] else "  (not needed)")
            for use in document["peppers"]
        ]
