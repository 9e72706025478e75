"""Tasks in words, for who reads of them in the admin."""

NAMES = {
    "accounts.tasks.deliver_pin": "PIN code asked for",
    "accounts.tasks.deliver_pin_over": "PIN code to deliver",
    "accounts.tasks.send_new_device_notice": "Notice of a new device",
    "accounts.tasks.send_invitation": "Mail of an invitation",
    "accounts.tasks.warn_of_key": "Warning that a key ends",
}


def name_of(task_path: str) -> str:
    """The words; or the function's name for a task that is no more."""
    return NAMES.get(task_path) or task_path.rpartition(".")[2].replace("_", " ").capitalize()
