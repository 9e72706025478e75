from django.apps import AppConfig


class ScriptsEngineConfig(AppConfig):
    name = "scripts_engine"
    verbose_name = "Scripts"

    def ready(self) -> None:
        """Registers what the apps below must know of this one."""
        from core.graphql.document_cost import register_prices
        from core.upkeep import register_duties
        from scripts_engine import audit_kinds, graphql, metrics, secrets  # noqa: F401
        from scripts_engine.flows.definitions import forget_definitions
        from scripts_engine.flows.failure_notices import tell_of_failures
        from scripts_engine.plans import blobs
        from scripts_engine.plans.planning import forget_expired_plans
        from scripts_engine.releases.kinds import register_kind
        from scripts_engine.releases.script_kind import SCRIPTS
        from scripts_engine.runs import problems
        from scripts_engine.runs.quota import settle_run_bytes
        from scripts_engine.runs.retention import forget_old_runs
        from scripts_engine.stored_values import forget_expired_values
        from scripts_engine.usage import count_usage, forget_old_usage

        secrets.register()
        audit_kinds.register()
        problems.register()
        blobs.register()
        register_kind(SCRIPTS)
        # Before forget_old_runs, which leaves runs that are not counted yet.
        register_duties(count_usage, tell_of_failures, every_minute=True)
        register_duties(
            forget_expired_values,
            forget_old_runs,
            # After forget_old_runs, so that deleted runs keep no version, and are not counted.
            forget_definitions,
            forget_expired_plans,
            # After forget_expired_plans, which name blobs.
            blobs.forget_unused_blobs,
            settle_run_bytes,
            forget_old_usage,
        )
        graphql.register()
        register_prices(
            {
                "diff": 400,
                "versions": 50,
                "drafts": 50,
                "requiredBy": 50,
                "libraries": 50,
                "release": 50,
                "undoes": 10,
                "changes": 50,
                "alertScript": 50,
                "usage": 500,
                "manifest": 2_000,
                "missingBlobs": 200,
                "keepBlobs": 2_000,
                "planManifest": 5_000,
                "applyPlan": 5_000,
                "requestHeaders": 20,
                "requestBody": 20,
                "requestBodyBase64": 20,
                "responseBody": 20,
                "responseBodyBase64": 20,
                "source": 10,
                "firstRun": 10,
                "pushedBy": 10,
                "pushedRuns": 10,
                "replayOf": 10,
            },
            list_sizes={"usage": 1_000, "versions": 100, "changes": 100},
        )
