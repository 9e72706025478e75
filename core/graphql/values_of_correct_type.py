"""The specification's rule on literals, without their values in its messages."""

from graphql import GraphQLError, ObjectValueNode, ValueNode, get_named_type, is_input_object_type
from graphql.validation import ValuesOfCorrectTypeRule


class ValuesOfCorrectTypeWithoutValuesRule(ValuesOfCorrectTypeRule):
    """Names the argument and its type. The value may be a PIN that was sent as a number."""

    def report_error(self, error: GraphQLError) -> None:
        node = error.nodes[0] if error.nodes else None
        if isinstance(node, ValueNode) and not self._is_about_input_fields(node):
            error = GraphQLError(self._message(), node)
        super().report_error(error)

    def _is_about_input_fields(self, node: ValueNode) -> bool:
        """Whether the object is fit as such, and the error names a field that it lacks."""
        expected = get_named_type(self.context.get_input_type())
        return isinstance(node, ObjectValueNode) and is_input_object_type(expected)

    def _message(self) -> str:
        expected = f"Expected value of type '{self.context.get_input_type()}'"
        argument = self._argument_name()
        return f"{expected} for argument '{argument}'." if argument else f"{expected}."

    def _argument_name(self) -> str | None:
        argument = self.context.get_argument()
        owner = self.context.get_directive() or self.context.get_field_def()
        if argument is None or owner is None:
            return None
        return next((name for name, known in owner.args.items() if known is argument), None)
