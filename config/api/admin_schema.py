"""The schema of /admin/graphql: programs manage their organisation."""

import graphene

from accounts.graphql.programs import api_keys, members, users
from accounts.graphql.programs.queries import AccountsQuery
from scripts_engine.graphql.mutations import hooks, scripts, secrets
from scripts_engine.graphql.queries import ScriptsQuery
from sessions_api.graphql.programs import SessionsQuery, end_session_field


class Query(AccountsQuery, ScriptsQuery, SessionsQuery, graphene.ObjectType):
    """The data of the API key's organisation, and of no other."""


class Mutation(graphene.ObjectType):
    """Changes to the API key's organisation."""

    create_user = users.create_user_field
    update_user = users.update_user_field
    deactivate_user = users.deactivate_user_field
    unlock_user = users.unlock_user_field
    add_member = members.add_member_field
    remove_member = members.remove_member_field
    create_api_key = api_keys.create_api_key_field
    rotate_api_key = api_keys.rotate_api_key_field
    revoke_api_key = api_keys.revoke_api_key_field
    create_script = scripts.create_script_field
    update_script = scripts.update_script_field
    delete_script = scripts.delete_script_field
    create_hook = hooks.create_hook_field
    rotate_call_token = hooks.rotate_call_token_field
    update_hook = hooks.update_hook_field
    delete_hook = hooks.delete_hook_field
    run_script = scripts.run_script_field
    restore_script_version = scripts.restore_script_version_field
    set_secret = secrets.set_secret_field
    delete_secret = secrets.delete_secret_field
    end_session = end_session_field
    revoke_device = users.revoke_device_field


schema = graphene.Schema(query=Query, mutation=Mutation)
