"""What happens to accounts, one file an event. No request, no GraphQL, no admin in here."""
