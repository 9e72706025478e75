from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        """Registers what the apps below must know of this one."""
        from core.graphql.document_cost import register_prices
        from core.metrics.exposition import add_figures
        from jobs import alerts, audit_kinds, metrics, problems, pushes, retention  # noqa: F401
        from jobs.graphql import field_scopes
        from jobs.queue.figures import message_metrics, queue_metrics
        from jobs.schedules.releases import ScheduleKind
        from scripts_engine.releases.kinds import register_kind

        alerts.register()
        audit_kinds.register()
        problems.register()
        pushes.register()
        retention.register()
        field_scopes.register()
        register_kind(ScheduleKind())
        add_figures(message_metrics)
        add_figures(queue_metrics)
        register_prices({"nextTicks": 200, "ticks": 50})
