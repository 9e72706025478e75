"""GraphQL of scripts, runs and secrets, with the scopes that its fields need."""

from accounts.graphql.field_scopes import any_key, for_programs, needs_scopes
from accounts.scopes import Scope


def register() -> None:
    read, bodies, secrets = Scope.READ_SCRIPTS, Scope.READ_PAYLOADS, Scope.WRITE_SECRETS
    for_programs(
        "Query",
        fields={
            "scripts": read,
            "script": read,
            "runs": read,
            "runsSince": read,
            "run": read,
            "release": read,
            "releases": read,
            "manifest": read,
            "missingBlobs": read,
            "plan": read,
            "usage": read,
            "secrets": secrets,
            "storedValues": bodies,
            "storedValue": bodies,
        },
    )
    for_programs(
        "Mutation",
        fields={
            # It publishes a source at once.
            "createScript": needs_scopes(Scope.WRITE_DRAFTS, Scope.PUBLISH),
            "updateScript": needs_scopes(Scope.PUBLISH, source=Scope.WRITE_DRAFTS),
            "deleteScript": Scope.PUBLISH,
            "restoreScriptVersion": Scope.PUBLISH,
            "saveDraft": Scope.WRITE_DRAFTS,
            # Another author's draft needs Publish too.
            "deleteDraft": Scope.WRITE_DRAFTS,
            "publish": Scope.PUBLISH,
            "updateDependents": needs_scopes(Scope.WRITE_DRAFTS, Scope.PUBLISH),
            "keepBlobs": Scope.WRITE_DRAFTS,
            # Each object that these change needs its own scope too.
            "undoRelease": read,
            "planManifest": read,
            "applyPlan": read,
            "runScript": needs_scopes(Scope.RUN_SCRIPTS, source=Scope.WRITE_DRAFTS),
            # Its alerts name API keys, too.
            "setAlertScript": Scope.ALL,
            "setSecret": secrets,
            "deleteSecret": secrets,
            "setStoredValue": secrets,
            "deleteStoredValue": secrets,
        },
    )
    for_programs(
        "Organisation", fields={"alertScript": read, "runBytesQuota": read, "runBytesUsed": read}
    )
    for_programs("Script", read, is_listed=True)
    for_programs("ScriptVersion", read)
    for_programs("Release", read, is_listed=True)
    for_programs("Change", read)
    for_programs("Plan", read)
    for_programs("PlanProblem", read)
    for_programs("AppliedPlan", read)
    for_programs(
        "Run",
        read,
        is_listed=True,
        fields={
            "requestQuery": bodies,
            "requestPath": bodies,
            "requestHeaders": bodies,
            "requestBody": bodies,
            "requestBodyBase64": bodies,
            "responseBody": bodies,
            "responseBodyBase64": bodies,
            "logs": bodies,
            # Its message may quote what came in.
            "error": bodies,
        },
    )
    for_programs("RunFeed", read)
    for_programs("RequestHeader", bodies)
    for_programs("Usage", read)
    for_programs("LogLine", bodies)
    for_programs("RunError", bodies)
    for_programs("Secret", secrets)
    # Mutations return it too: those who may only write do not read a value, not even an old one.
    for_programs("StoredValue", any_key, fields={"value": bodies})
    for_programs("StoredValueConnection", bodies)
