from graphql import GraphQLResolveInfo

from config.http.graphql_problem import GraphQLProblem

MAX_BODY_BYTES = 16 * 1024 * 1024


def spend(info: GraphQLResolveInfo, content: bytes | memoryview) -> bytes:
    """The bytes of a payload or reply, counted against what one answer may hold.

    Beyond ``MAX_BODY_BYTES``: LIMIT_EXCEEDED. A list of runs names as many as one likes; their
    bodies are for few at a time, or one by one.
    """
    request = info.context.request
    request.body_bytes_shown = getattr(request, "body_bytes_shown", 0) + len(content)
    if request.body_bytes_shown > MAX_BODY_BYTES:
        raise GraphQLProblem(
            "LIMIT_EXCEEDED", "One answer holds 16 MiB of bodies. Ask for fewer runs at a time."
        )
    return bytes(content)
