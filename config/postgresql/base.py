"""What ``ENGINE`` names."""

from typing import Any

from django.db.backends.postgresql import base

from config.postgresql.connection import PatientConnection
from config.postgresql.schema import SchemaEditor


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes no connection out of the pool that the server has dropped meanwhile.

    Django's own way, ``CONN_HEALTH_CHECKS``, costs every request a round trip, and pauses for a
    second at the first connection that it finds dead.
    """

    SchemaEditorClass = SchemaEditor

    def __init__(self, settings_dict: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(settings_dict, *args, **kwargs)
        if pool := settings_dict["OPTIONS"].get("pool"):
            pool["connection_class"] = PatientConnection

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        # As often as the pool holds dead ones: for each that is given back it opens another.
        while self.pool and connection.is_dropped():
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def statement_cursor(self) -> base.ServerBindingCursor:
        """For statements that come again and again: the server plans them once a connection.

        Values are bound there too; Django's cursors write them into the statement.
        """
        return base.ServerBindingCursor(self.connection)  # type: ignore[call-arg]
