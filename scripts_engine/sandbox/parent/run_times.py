"""How long the runs of each tenant took lately."""

from __future__ import annotations

# How much the latest run counts: the mean follows a change within a dozen runs.
_WEIGHT = 0.2
_MAX_TENANTS = 1000


class RunTimes:
    """Exponential moving averages of the tenants that ran last. Thread-safe."""

    def __init__(self) -> None:
        self._means: dict[str, float] = {}

    def record(self, tenant: str, seconds: float) -> None:
        means = self._means
        mean = means.get(tenant)
        if mean is None and len(means) >= _MAX_TENANTS:
            # All of them: each is known again after its next run.
            self._means = means = {}
        means[tenant] = seconds if mean is None else mean + _WEIGHT * (seconds - mean)

    def mean_seconds(self, tenant: str) -> float | None:
        return self._means.get(tenant)
