"""The schema of /admin/graphql: programs manage their organisation."""

import graphene

from accounts.graphql.programs import api_keys, users
from accounts.graphql.programs.queries import AccountsQuery
from core.graphql.resolving import placed_here
from hooks.graphql import mutations as hooks
from hooks.graphql.hooks import HooksQuery
from hooks.graphql.refused_calls import SendersQuery
from jobs.graphql import queue, schedules
from jobs.graphql.schedules import SchedulesQuery
from scripts_engine.graphql import mutations, plans, releases, stored_values
from scripts_engine.graphql.plans import PlansQuery
from scripts_engine.graphql.queries import ScriptsQuery
from scripts_engine.graphql.releases import ReleasesQuery
from scripts_engine.graphql.stored_values import StoredValuesQuery
from scripts_engine.graphql.usage import UsageQuery
from sessions_api.graphql.programs import SessionsQuery, end_session_field


class Query(
    AccountsQuery,
    ScriptsQuery,
    ReleasesQuery,
    PlansQuery,
    StoredValuesQuery,
    UsageQuery,
    HooksQuery,
    SendersQuery,
    SchedulesQuery,
    SessionsQuery,
    graphene.ObjectType,
):
    """The data of the API key's organisation, and of no other."""


class Mutation(graphene.ObjectType):
    """Changes to the API key's organisation."""

    create_user = placed_here(users.create_user_field)
    update_user = placed_here(users.update_user_field)
    deactivate_user = placed_here(users.deactivate_user_field)
    unlock_user = placed_here(users.unlock_user_field)
    add_member = placed_here(users.add_member_field)
    remove_member = placed_here(users.remove_member_field)
    create_api_key = placed_here(api_keys.create_api_key_field)
    update_api_key = placed_here(api_keys.update_api_key_field)
    rotate_api_key = placed_here(api_keys.rotate_api_key_field)
    revoke_api_key = placed_here(api_keys.revoke_api_key_field)
    create_script = placed_here(mutations.create_script_field)
    update_script = placed_here(mutations.update_script_field)
    delete_script = placed_here(mutations.delete_script_field)
    save_draft = placed_here(releases.save_draft_field)
    delete_draft = placed_here(releases.delete_draft_field)
    publish = placed_here(releases.publish_field)
    update_dependents = placed_here(releases.update_dependents_field)
    undo_release = placed_here(releases.undo_release_field)
    keep_blobs = placed_here(plans.keep_blobs_field)
    plan_manifest = placed_here(plans.plan_manifest_field)
    apply_plan = placed_here(plans.apply_plan_field)
    create_hook = placed_here(hooks.create_hook_field)
    rotate_call_token = placed_here(hooks.rotate_call_token_field)
    update_hook = placed_here(hooks.update_hook_field)
    pin_hook = placed_here(hooks.pin_hook_field)
    delete_hook = placed_here(hooks.delete_hook_field)
    set_sender = placed_here(hooks.set_sender_field)
    set_signing_secret = placed_here(hooks.set_signing_secret_field)
    delete_signing_secret = placed_here(hooks.delete_signing_secret_field)
    expect_handshake = placed_here(hooks.expect_handshake_field)
    replay_refused_call = placed_here(hooks.replay_refused_call_field)
    send_test_event = placed_here(hooks.send_test_event_field)
    start_listening = placed_here(hooks.start_listening_field)
    create_schedule = placed_here(schedules.create_schedule_field)
    update_schedule = placed_here(schedules.update_schedule_field)
    delete_schedule = placed_here(schedules.delete_schedule_field)
    run_schedule_now = placed_here(schedules.run_schedule_now_field)
    run_script = placed_here(mutations.run_script_field)
    enqueue_run = placed_here(queue.enqueue_run_field)
    cancel_run = placed_here(queue.cancel_run_field)
    replay_runs = placed_here(queue.replay_runs_field)
    pause_queue = placed_here(queue.pause_queue_field)
    resume_queue = placed_here(queue.resume_queue_field)
    restore_script_version = placed_here(mutations.restore_script_version_field)
    set_alert_script = placed_here(mutations.set_alert_script_field)
    set_secret = placed_here(mutations.set_secret_field)
    delete_secret = placed_here(mutations.delete_secret_field)
    set_stored_value = placed_here(stored_values.set_stored_value_field)
    delete_stored_value = placed_here(stored_values.delete_stored_value_field)
    end_session = placed_here(end_session_field)
    revoke_device = placed_here(users.revoke_device_field)


schema = graphene.Schema(query=Query, mutation=Mutation)
