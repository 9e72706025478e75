from scripts_engine.flows.author import Author
from scripts_engine.models import Script, ScriptVersion


def save_source(script: Script, source: str, author: Author) -> ScriptVersion:
    """Makes the source the script's next version and its current one.

    A source that is the current one already makes no new version. Call inside a transaction
    that holds the script's row.
    """
    current = script.current_version
    if current is not None and current.source == source:
        return current
    last = script.versions.order_by("-number").values_list("number", flat=True).first() or 0
    version = ScriptVersion.objects.create(
        script=script,
        number=last + 1,
        source=source,
        created_by=author.user,
        created_with=author.api_key,
    )
    script.current_version = version
    script.save(update_fields=["current_version", "updated_at"])
    return version
