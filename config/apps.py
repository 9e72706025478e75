from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class MoonhookConfig(AppConfig):
    """The composition root: its own checks and commands."""

    name = "config"
    label = "moonhook"
    verbose_name = "Moonhook"

    def ready(self) -> None:
        # Imported for its registrations, which need the settings.
        from config import checks, deploy_checks  # noqa: F401, PLC0415
        from config.logs.task_context import follow_tasks  # noqa: PLC0415
        from config.scrape.task_metrics import count_tasks  # noqa: PLC0415

        follow_tasks()
        count_tasks()


class MoonhookAdminConfig(AdminConfig):
    """The admin on Moonhook's own site."""

    default_site = "config.admin_site.MoonhookAdminSite"
