"""The schema of /admin/graphql: an organisation, managed by its programs."""

import graphene

from accounts.graphql.programs import api_keys, members, users
from accounts.graphql.programs.queries import AccountsQuery
from scripts_engine.graphql.mutations import (
    create_hook,
    create_script,
    delete_hook,
    delete_script,
    delete_secret,
    restore_script_version,
    rotate_call_token,
    run_script,
    set_secret,
    update_hook,
    update_script,
)
from scripts_engine.graphql.queries import ScriptsQuery
from sessions_api.graphql.programs import SessionsQuery, end_session_field


class Query(AccountsQuery, ScriptsQuery, SessionsQuery, graphene.ObjectType):
    """What the organisation of the API key has. Nothing of others is ever shown."""


class Mutation(graphene.ObjectType):
    """What an organisation's programs may change."""

    create_user = users.create_user_field
    update_user = users.update_user_field
    deactivate_user = users.deactivate_user_field
    unlock_user = users.unlock_user_field
    add_member = members.add_member_field
    remove_member = members.remove_member_field
    create_api_key = api_keys.create_api_key_field
    rotate_api_key = api_keys.rotate_api_key_field
    revoke_api_key = api_keys.revoke_api_key_field
    create_script = create_script.field
    update_script = update_script.field
    delete_script = delete_script.field
    create_hook = create_hook.field
    rotate_call_token = rotate_call_token.field
    update_hook = update_hook.field
    delete_hook = delete_hook.field
    run_script = run_script.field
    restore_script_version = restore_script_version.field
    set_secret = set_secret.field
    delete_secret = delete_secret.field
    end_session = end_session_field
    revoke_device = users.revoke_device_field


schema = graphene.Schema(query=Query, mutation=Mutation)
