"""The actors that the audit log can name. Each endpoint states its own once per request."""

from accounts.models import ActorKind, ApiKey, User
from core.http.origin import Actor, Origin


def person(user: User) -> Actor:
    return Actor(ActorKind.USER, str(user.pk), user.email, is_operator=user.is_superuser)


def program(api_key: ApiKey) -> Actor:
    return Actor(
        ActorKind.API_KEY, api_key.key, api_key.name, organisation_id=str(api_key.organisation_id)
    )


def command_origin(name: str) -> Origin:
    """The origin of what a management command does."""
    return Origin(actor=Actor(ActorKind.COMMAND, name, f"manage.py {name}"))
