"""What is counted, for Prometheus. Nothing of the project is imported here but settings."""

from django.conf import settings

# Asked for first of all: the settings name the directory that prometheus_client looks for as soon
# as it is imported.
ARE_METRICS_ON: bool = settings.ARE_METRICS_ON
