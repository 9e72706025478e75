from argparse import ArgumentParser
from typing import Any

from accounts.audit import command_origin
from accounts.flows.api_keys import issue_api_key
from accounts.management.json_output import JsonCommand, organisation_option
from accounts.scopes import PRESETS, in_order, preset_named


class Command(JsonCommand):
    help = "Creates an API key. Its secret is printed once and not stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--organisation", required=True, help="the organisation's id")
        parser.add_argument("--name", required=True, help="the program that uses the key")
        presets = ", ".join(preset.name for preset in PRESETS)
        parser.add_argument(
            "--scopes",
            help=f"{presets}, or names of scopes separated by blanks or commas; default All",
        )

    def perform(self, options: dict[str, Any]) -> dict[str, Any]:
        organisation = organisation_option(options["organisation"])
        api_key, secret = issue_api_key(
            organisation,
            name=options["name"],
            scopes=_scopes(options["scopes"]),
            origin=command_origin("create_api_key"),
        )
        return {
            "id": str(api_key.pk),
            "key": api_key.key,
            "secret": secret,
            "scopes": [scope.value for scope in in_order(api_key.held_scopes)],
            "organisation": {"id": str(organisation.pk), "name": organisation.name},
        }

    def lines(self, document: dict[str, Any]) -> list[str]:
        return [
            f"key:    {document['key']}",
            f"secret: {document['secret']}",
            f"scopes: {' '.join(document['scopes'])}",
            "The secret is shown only once.",
        ]


def _scopes(given: str | None) -> list[str] | None:
    """The names of the scopes, of a preset where one is named; ``None`` for all."""
    if given is None:
        return None
    preset = preset_named(given)
    if preset is not None:
        return [scope.value for scope in in_order(preset.scopes)]
    return given.replace(",", " ").split()
