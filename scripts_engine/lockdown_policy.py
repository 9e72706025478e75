"""Which layers of the lockdown the start insists on."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from scripts_engine.sandbox.parent.layers import Layer, active_layers

INDISPENSABLE = "seccomp"


def require_lockdown() -> list[Layer]:
    """The layers that are missing here, for the start to say.

    In production a missing seccomp raises ``ImproperlyConfigured``: without it a hole in the Lua
    interpreter would be a hole in this machine.
    """
    missing = [layer for layer in active_layers() if not layer.is_active]
    for layer in missing:
        if settings.IS_PRODUCTION and layer.name == INDISPENSABLE:
            raise ImproperlyConfigured(
                f"The sandbox's {layer.name} layer is not active: {layer.detail}. "
                "Moonhook does not run scripts in production without it."
            )
    return missing
