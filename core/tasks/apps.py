from django.apps import AppConfig


class BackgroundConfig(AppConfig):
    """Listed before django_tasks_db in the settings, so that our ``db_worker`` is used."""

    name = "core.tasks"
    label = "background"
    verbose_name = "Background work"
