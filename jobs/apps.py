from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        """Registers what the apps below must know of this one."""
        from core.graphql.document_cost import register_prices
        from core.metrics.exposition import add_figures
        from jobs import alerts, audit_kinds, graphql, metrics, pushes, retention  # noqa: F401
        from jobs.queue import queue_limit
        from jobs.queue.figures import message_metrics, queue_metrics
        from jobs.schedules.releases import ScheduleKind
        from scripts_engine.releases.kinds import register_kind

        alerts.register()
        audit_kinds.register()
        queue_limit.register()
        pushes.register()
        retention.register()
        graphql.register()
        register_kind(ScheduleKind())
        add_figures(message_metrics)
        add_figures(queue_metrics)
        register_prices({"nextTicks": 200, "ticks": 50})
