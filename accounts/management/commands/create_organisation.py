from argparse import ArgumentParser
from typing import Any

from accounts.audit import command_origin
from accounts.flows.organisations import create_organisation
from accounts.management.json_output import JsonCommand


class Command(JsonCommand):
    help = "Creates an organisation."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", help="its name")

    def perform(self, options: dict[str, Any]) -> dict[str, Any]:
        organisation = create_organisation(
            options["name"], origin=command_origin("create_organisation")
        )
        return {"id": str(organisation.pk), "name": organisation.name}
