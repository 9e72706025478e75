"""Infrastructure that any such service needs; imports no other part of the project."""
