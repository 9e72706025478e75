from typing import NamedTuple


class EmptyState(NamedTuple):
    """What an empty list says: why it is, and what to do next.

    ``page`` is the name of the admin page that the button leads to; without one, no button.
    """

    text: str
    button: str = ""
    page: str = ""
