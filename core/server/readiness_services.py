"""Do the other services of this node run?

None of them is needed to answer a request, so none of them makes a web server unready: it would
take every node out of a balancer when a background worker has died everywhere.
"""

from core.server.services import RUNNING, services_of_this_node


def conditions() -> dict[str, str]:
    """By service: running, down, or unstable. Empty in a server that was started by itself."""
    return {name: state.condition for name, state in services_of_this_node() or ()}


def reasons() -> dict[str, str]:
    """By service that does not run as it should: how it ended last."""
    return {
        name: state.last_end
        for name, state in services_of_this_node() or ()
        if state.condition != RUNNING
    }
