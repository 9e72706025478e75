from django.apps import AppConfig


class BackgroundConfig(AppConfig):
    """Stands before django_tasks_db in the settings, so that ``db_worker`` is ours."""

    name = "core.tasks"
    label = "background"
    verbose_name = "Background work"
