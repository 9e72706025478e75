from django.apps import AppConfig


class HooksConfig(AppConfig):
    name = "hooks"
    verbose_name = "Hooks"

    def ready(self) -> None:
        """Registers what the apps below must know of this one."""
        from core.graphql.document_cost import register_prices
        from core.http.redaction import register_secret_position
        from hooks import audit_kinds, graphql, metrics, problems  # noqa: F401
        from hooks.edge.wsgi import TOKEN_IN_PATH
        from hooks.flows import retention
        from hooks.releases import HookKind
        from hooks.senders import headers_without_credentials
        from scripts_engine.releases.kinds import register_kind
        from scripts_engine.shown_headers import register_sender_headers

        audit_kinds.register()
        problems.register()
        retention.register()
        graphql.register()
        register_prices({"hooks": 50}, list_sizes={"hooks": 100})
        register_kind(HookKind())
        register_sender_headers(headers_without_credentials())
        register_secret_position(TOKEN_IN_PATH)
