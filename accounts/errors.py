"""What the flows of this app refuse to do. Bad fields are Django's ``ValidationError``."""


class ForbiddenError(Exception):
    """The actor may not do this to that object."""


class NotFoundError(Exception):
    """There is no such object within the actor's reach."""
