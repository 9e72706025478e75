from django.apps import AppConfig


class SessionsApiConfig(AppConfig):
    name = "sessions_api"
    verbose_name = "Sessions"
