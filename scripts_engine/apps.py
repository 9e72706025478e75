from django.apps import AppConfig


class ScriptsEngineConfig(AppConfig):
    name = "scripts_engine"
    verbose_name = "Scripts"
