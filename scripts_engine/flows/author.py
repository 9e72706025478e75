from typing import NamedTuple

from accounts.models import ApiKey, User


class Author(NamedTuple):
    """Author of a change or a run: a person in the admin, or a program with its key."""

    user: User | None = None
    api_key: ApiKey | None = None


# Runs of a webhook call have no author.
NOBODY = Author()
