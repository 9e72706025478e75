from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        """Registers what core must know of this app."""
        from accounts import metrics, upkeep  # noqa: F401
        from accounts.graphql import field_scopes
        from core.graphql.document_cost import register_prices

        upkeep.register()
        field_scopes.register()
        register_prices({"keysCreated": 50})
