"""A small schema whose resolvers append their names to ``calls``."""

from typing import Any

import graphene
from graphql import GraphQLError

from core.graphql.problem import GraphQLCode, GraphQLProblem

calls: list[str] = []

REFUSED_SECRET = "hunter2-refused"


class SendVia(graphene.Enum):
    Both = "Both"
    Sms = "Sms"


class CheckPinCode(graphene.ObjectType):
    result = graphene.Boolean(required=True)


class User(graphene.ObjectType):
    email = graphene.String(required=True)
    manager = graphene.Field(lambda: User)
    deputy = graphene.Field(lambda: User)

    def resolve_email(self, info: Any) -> str:
        return "alice@acme.example"


class ProfileInput(graphene.InputObjectType):
    name = graphene.String(required=True)
    numbers = graphene.List(graphene.Int)


class Query(graphene.ObjectType):
    me = graphene.Field(User)
    strict_me = graphene.Field(User, required=True)
    limited = graphene.String()
    missing = graphene.String()
    broken = graphene.String()
    broken_in_graphql = graphene.String()
    number = graphene.Int()
    session = graphene.String()
    echo = graphene.String(text=graphene.String(required=True))

    def resolve_me(self, info: Any) -> User:
        calls.append("me")
        return User()

    def resolve_strict_me(self, info: Any) -> User:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is nobody.")

    def resolve_limited(self, info: Any) -> str:
        raise GraphQLProblem(GraphQLCode.RATE_LIMITED, "Too many.", retryAfter=17)

    def resolve_missing(self, info: Any) -> str:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "No such script.")

    def resolve_broken(self, info: Any) -> str:
        raise ValueError(f"{REFUSED_SECRET} is not known")

    def resolve_broken_in_graphql(self, info: Any) -> str:
        raise GraphQLError(f"{REFUSED_SECRET} is not known", info.field_nodes)

    def resolve_number(self, info: Any) -> str:
        return REFUSED_SECRET

    def resolve_session(self, info: Any) -> str:
        return repr(info.context.session)

    def resolve_echo(self, info: Any, text: str) -> str:
        calls.append("echo")
        return text


class SendPinCode(graphene.Mutation):
    class Arguments:
        email = graphene.String()
        send_via = SendVia()

    Output = graphene.Boolean

    def mutate(self, info: Any, email: str | None = None, send_via: Any = None) -> bool:
        calls.append("sendPinCode")
        if email is None:
            raise GraphQLProblem(
                GraphQLCode.BAD_USER_INPUT, "Give an e-mail address.", field="email"
            )
        return True


class CheckPin(graphene.Mutation):
    class Arguments:
        email = graphene.String()
        pin = graphene.String()

    Output = CheckPinCode

    def mutate(self, info: Any, email: str | None = None, pin: str | None = None) -> Any:
        calls.append("checkPinCode")
        return CheckPinCode(result=False)


class SaveProfile(graphene.Mutation):
    class Arguments:
        profile = ProfileInput(required=True)

    Output = graphene.Boolean

    def mutate(self, info: Any, profile: Any) -> bool:
        calls.append("saveProfile")
        return True


class Mutation(graphene.ObjectType):
    send_pin_code = SendPinCode.Field()
    check_pin_code = CheckPin.Field()
    save_profile = SaveProfile.Field()


schema = graphene.Schema(query=Query, mutation=Mutation)
