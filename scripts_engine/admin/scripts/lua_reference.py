"""The Lua reference as the script editor takes it."""

from scripts_engine.lua_reference.sections import MOONHOOK
from scripts_engine.lua_reference.standard import STANDARD


def reference() -> list[dict[str, str]]:
    """All entries for completion and the panel, Moonhook's own first; texts are plain."""
    return [
        {
            "name": entry.name,
            "signature": entry.signature,
            "explanation": entry.explanation.replace("`", ""),
            "limits": entry.limits.replace("`", ""),
            "example": entry.example,
            "insert": entry.insert or entry.name,
            "words": entry.words,
            "origin": origin,
        }
        for origin, entries in (("Moonhook", MOONHOOK), ("Lua", STANDARD))
        for entry in entries
    ]
