from django.apps import AppConfig


class SessionsApiConfig(AppConfig):
    name = "sessions_api"
    verbose_name = "Sessions"

    def ready(self) -> None:
        """Registers what core must know of this app."""
        from core.upkeep import register_duties
        from sessions_api import audit_kinds, graphql, metrics  # noqa: F401  (every process knows all metrics)
        from sessions_api.device_authorization.flows import forget_expired_logins
        from sessions_api.flows import end_expired_sessions

        graphql.register()
        audit_kinds.register()
        register_duties(end_expired_sessions, forget_expired_logins)
