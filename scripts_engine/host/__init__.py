"""Functions that a script may call in its parent process, one file per capability."""
