"""The least that could answer, under the server that Moonhook has."""
