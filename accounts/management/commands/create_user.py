from argparse import ArgumentParser
from typing import Any

from accounts.audit import command_origin
from accounts.flows.users import create_user
from accounts.management.json_output import JsonCommand, organisation_option
from accounts.models import Role


class Command(JsonCommand):
    help = "Creates a user as a member of an organisation."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--email", required=True, help="the login name")
        parser.add_argument("--organisation", required=True, help="the organisation's id")
        parser.add_argument("--name", default="", help="the user's name")
        parser.add_argument("--phone", default="", help="for codes by SMS, such as +491701234567")
        parser.add_argument("--role", default=Role.MEMBER, choices=Role.values)

    def perform(self, options: dict[str, Any]) -> dict[str, Any]:
        user = create_user(
            organisation_option(options["organisation"]),
            email=options["email"],
            name=options["name"],
            phone=options["phone"],
            role=options["role"],
            origin=command_origin("create_user"),
        )
        return {"id": str(user.pk), "email": user.email}
