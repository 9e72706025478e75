from argparse import ArgumentParser
from typing import Any

from accounts.actors import command_origin
from accounts.flows.api_keys import issue_api_key
from accounts.management.json_output import JsonCommand, organisation_option


class Command(JsonCommand):
    help = "Creates an API key. Its secret is printed once and not stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--organisation", required=True, help="the organisation's id")
        parser.add_argument("--name", required=True, help="the program that uses the key")

    def perform(self, options: dict[str, Any]) -> dict[str, Any]:
        organisation = organisation_option(options["organisation"])
        api_key, secret = issue_api_key(
            organisation, name=options["name"], origin=command_origin("create_api_key")
        )
        return {
            "id": str(api_key.pk),
            "key": api_key.key,
            "secret": secret,
            "organisation": {"id": str(organisation.pk), "name": organisation.name},
        }

    def lines(self, document: dict[str, Any]) -> list[str]:
        return [
            f"key:    {document['key']}",
            f"secret: {document['secret']}",
            "The secret is shown only once.",
        ]
