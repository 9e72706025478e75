"""The schema of /admin/graphql: an organisation, managed by its programs."""

import graphene

from accounts.graphql.programs import (
    add_member,
    create_api_key,
    create_user,
    deactivate_user,
    remove_member,
    revoke_api_key,
    revoke_device,
    rotate_api_key,
    unlock_user,
    update_user,
)
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

    create_user = create_user.field
    update_user = update_user.field
    deactivate_user = deactivate_user.field
    unlock_user = unlock_user.field
    add_member = add_member.field
    remove_member = remove_member.field
    create_api_key = create_api_key.field
    rotate_api_key = rotate_api_key.field
    revoke_api_key = revoke_api_key.field
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
    revoke_device = revoke_device.field


schema = graphene.Schema(query=Query, mutation=Mutation)
