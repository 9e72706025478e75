from accounts.models import Organisation


def create_organisation(name: str) -> Organisation:
    """Raises ``ValidationError`` for an empty or overlong name."""
    organisation = Organisation(name=name.strip())
    organisation.full_clean()
    organisation.save()
    return organisation
