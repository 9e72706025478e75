from sessions_api.models import Session


def end_session(session: Session) -> None:
    """Gone at once, everywhere. The key or device token that opened it stays valid."""
    Session.objects.filter(pk=session.pk).delete()
