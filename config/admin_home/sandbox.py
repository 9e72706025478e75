"""Whether scripts can run here."""

from dataclasses import dataclass

from accounts.admin.labels import DANGER, SUCCESS, WARNING
from scripts_engine.sandbox.layers import Layer
from scripts_engine.sandbox.pool import PoolStats
from scripts_engine.sandbox_state import Health, sandbox_state

_TOLD = {
    Health.READY: ("Healthy", SUCCESS, "Scripts run."),
    Health.BUSY: ("Busy", WARNING, "Every slot of this process is taken: calls wait, or get 503."),
    Health.UNAVAILABLE: (
        "Down",
        DANGER,
        "No sandbox can be had: calls fail. The log says why; so does check_sandbox.",
    ),
    Health.UNKNOWN: ("Slow", WARNING, "It has not answered yet. Load this page again."),
}


@dataclass(frozen=True, slots=True)
class Sandbox:
    title: str
    colour: str
    text: str
    layers: tuple[Layer, ...] = ()
    pool: PoolStats | None = None
    """The machine's own affairs, where they are told: empty and ``None`` elsewhere."""

    @property
    def missing(self) -> list[Layer]:
        return [layer for layer in self.layers if not layer.is_active]


def sandbox(is_operator: bool) -> Sandbox:
    """How busy the others are, and what the machine lacks, is for superusers."""
    state = sandbox_state()
    told = _TOLD[state.health]
    return Sandbox(*told, state.layers, state.pool) if is_operator else Sandbox(*told)
