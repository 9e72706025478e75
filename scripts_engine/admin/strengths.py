"""How strongly a call proves its sender, as a coloured label."""

from django.utils.safestring import SafeString

from core.admin.display import DANGER, SUCCESS, WARNING, label
from scripts_engine.senders import Strength

_STRENGTHS = {
    Strength.SIGNED: ("Signed", SUCCESS),
    Strength.BODY_UNSIGNED: ("The body is not signed", WARNING),
    Strength.SHARED_SECRET: ("Shared secret in clear", WARNING),
    Strength.HANDSHAKE_ONLY: ("Handshake only", DANGER),
}


def strength_label(strength: Strength) -> SafeString:
    return label(*_STRENGTHS[strength])
