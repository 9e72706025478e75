"""The limit of open files, which a worker with many connections and sandboxes would reach."""

import resource


def allow_open_files(count: int) -> None:
    """Raise the soft limit, usually 1,024, to this number, or as far as the hard one allows.

    Never lowers it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
