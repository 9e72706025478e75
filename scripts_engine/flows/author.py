from typing import NamedTuple

from accounts.models import ApiKey, User


class Author(NamedTuple):
    """Who does something to a script: a person in the admin, or a program with its key."""

    user: User | None = None
    api_key: ApiKey | None = None


NOBODY = Author()
