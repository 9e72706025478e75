from django.core.exceptions import ValidationError

from accounts.models import Organisation
from accounts.plain_text import validate_plain_text
from scripts_engine.errors import SourceError
from scripts_engine.sandbox.limits import MAX_SOURCE_BYTES
from scripts_engine.sandbox_pool import sandbox_pool


def check_source(organisation: Organisation, source: str, script_name: str) -> None:
    """Raises unless the source compiles: ``SourceError`` with the line, ``ValidationError``.

    Compiled in a sandbox of the organisation, because a compiler too may be attacked.
    """
    try:
        validate_plain_text(source)
    except ValidationError as error:
        raise ValidationError({"source": error}) from None
    encoded = source.encode()
    if len(encoded) > MAX_SOURCE_BYTES:
        raise ValidationError(
            {
                "source": ValidationError(
                    f"A source may have at most {MAX_SOURCE_BYTES} bytes in UTF-8; "
                    f"this one has {len(encoded)}.",
                    code="max_length",
                )
            }
        )
    flaw = sandbox_pool().check_syntax(str(organisation.pk), encoded, script_name)
    if flaw is not None:
        raise SourceError(flaw.message, flaw.line)
