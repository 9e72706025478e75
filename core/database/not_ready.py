class NotReady(Exception):
    """``reason`` is a short code for everybody; the cause is for the log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
