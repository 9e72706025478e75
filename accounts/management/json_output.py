"""The base of commands whose output people or programs read."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from accounts.models import Organisation
from core.database.ids import parse_uuid
from core.errors import ForbiddenError, NotFoundError


class JsonCommand(BaseCommand):
    """A command that prints lines, or one JSON object with ``--json``."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object on standard output"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            document = self.perform(options)
        except ValidationError as error:
            raise CommandError("; ".join(_reasons(error))) from None
        except (ForbiddenError, NotFoundError) as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            self.stdout.write(json.dumps(document))
        else:
            self.stdout.write("\n".join(self.lines(document)))

    def perform(self, options: dict[str, Any]) -> dict[str, Any]:
        """Does the work and returns the object to print."""
        raise NotImplementedError

    def lines(self, document: dict[str, Any]) -> list[str]:
        """The object as lines for people."""
        return [f"{name}: {value}" for name, value in document.items()]


def organisation_option(text: str) -> Organisation:
    """The organisation with that id. Raises ``NotFoundError``."""
    primary_key = parse_uuid(text)
    found = (
        Organisation.objects.filter(pk=primary_key) if primary_key else Organisation.objects.none()
    )
    organisation = found.first()
    if organisation is None:
        raise NotFoundError("There is no organisation with this id.")
    return organisation


def _reasons(error: ValidationError) -> list[str]:
    if not hasattr(error, "error_dict"):
        return error.messages
    return [f"{field}: {' '.join(texts)}" for field, texts in error.message_dict.items()]
