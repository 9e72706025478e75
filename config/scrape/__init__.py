"""What Prometheus is told: the numbers of every process of this node."""

# First of all, for the same reason as there.
from config.metrics import ARE_METRICS_ON

__all__ = ["ARE_METRICS_ON"]
