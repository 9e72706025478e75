"""Metrics for Prometheus, in prometheus_client's multi-process mode."""

from django.conf import settings

# Read before prometheus_client is imported: on import it looks for the directory that the settings
# put into the environment.
ARE_METRICS_ON: bool = settings.ARE_METRICS_ON
