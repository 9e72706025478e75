from scripts_engine.models import Hook

FIELDS = frozenset({"name", "is_enabled"})


def update_hook(hook: Hook, **changes: object) -> Hook:
    """Changes the given ones of ``FIELDS``. Raises ``ValidationError`` by field."""
    for field in FIELDS & changes.keys():
        value = changes[field]
        setattr(hook, field, value.strip() if isinstance(value, str) else value)
    hook.full_clean()
    hook.save(update_fields=FIELDS & changes.keys())
    return hook
