"""Messages to people: the backend of Django's Tasks interface, and the attempts at each task."""
