"""Checks at start-up that the sandbox is locked down."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from scripts_engine.sandbox.parent.layers import Layer, active_layers

REQUIRED_LAYER = "seccomp"


def require_lockdown() -> list[Layer]:
    """Returns the inactive layers, to be reported at start-up.

    Raises ``ImproperlyConfigured`` in production if seccomp is inactive: a vulnerability of the
    Lua interpreter would then expose the machine.
    """
    missing = [layer for layer in active_layers() if not layer.is_active]
    for layer in missing:
        if settings.IS_PRODUCTION and layer.name == REQUIRED_LAYER:
            raise ImproperlyConfigured(
                f"The sandbox's {layer.name} layer is not active: {layer.detail}. "
                "Moonhook does not run scripts in production without it."
            )
    return missing
