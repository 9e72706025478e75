"""GraphQL of sessions, with the scopes that its fields need."""

from accounts.graphql.field_scopes import for_people, for_programs, oneself
from accounts.scopes import Scope


def register() -> None:
    for_programs("Query", fields={"sessions": Scope.READ_PEOPLE})
    for_programs("Mutation", fields={"endSession": Scope.WRITE_PEOPLE})
    for_programs("Session", Scope.READ_PEOPLE, is_listed=True)
    for_people("Query", sessions=oneself)
    for_people("Mutation", endSession=oneself)
    for_people("Session", oneself)
