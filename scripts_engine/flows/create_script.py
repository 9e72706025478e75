from django.db import transaction

from accounts.models import Organisation
from scripts_engine.flows.author import Author
from scripts_engine.flows.check_source import check_source
from scripts_engine.flows.save_source import save_source
from scripts_engine.models import Script


def create_script(organisation: Organisation, *, name: str, source: str, author: Author) -> Script:
    """A new script with its first version. Raises ``ValidationError`` or ``SourceError``."""
    script = Script(organisation=organisation, name=name.strip())
    script.full_clean()
    check_source(organisation, source, script.name)
    with transaction.atomic():
        script.save()
        save_source(script, source, author)
    return script
