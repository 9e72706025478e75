from accounts.audit import record
from accounts.models import AuthEventKind, Organisation
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin
from core.plain_text import storable
from scripts_engine.models import Secret


def delete_secret(organisation: Organisation, name: str, *, origin: Origin = NOWHERE) -> None:
    """Raises ``NotFoundError`` where there is none of that name."""
    deleted, _ = Secret.objects.of_organisation(organisation).filter(name=storable(name)).delete()
    if not deleted:
        raise NotFoundError("There is no secret of this name.")
    record(AuthEventKind.SECRET_DELETED, origin, organisation=organisation, credential=name)
