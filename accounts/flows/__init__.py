"""What happens to accounts, one file a subject. No request, no GraphQL, no admin in here."""
