"""What the worker asks of its fork server, one datagram a request.

FORK                 -> NUMBER pid, with the child's socket, pidfd and log file attached
EXIT_STATUS, NUMBER  -> NUMBER wait status of that child, which has ended
"""

from __future__ import annotations

import struct

FORK = b"F"
EXIT_STATUS = b"E"
NUMBER = struct.Struct(">q")

# The exit status of a child that ran into its address space limit outside of Lua.
EXIT_OUT_OF_MEMORY = 3
