from config.http.graphql_problem import GraphQLProblem


def not_found() -> GraphQLProblem:
    """One answer for an unknown id, a malformed one and somebody else's."""
    return GraphQLProblem("NOT_FOUND", "There is no such object.")
