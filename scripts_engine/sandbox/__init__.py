"""Runs untrusted Lua in locked-down processes. Imports neither Django nor the rest of the project.

Parent and child share `contract` (job, host calls, outcome), `limits`, `protocol` (the frames
between them), `log_area` (the log in shared memory) and `reply_headers`. The path of a run:

    parent/, in the worker, trusted            child/, one process per tenant, untrusted
    pool           the entry point             fork_server    forks it, once per worker
      slots          limits concurrent runs    lockdown       drops its privileges
      children       find or start a child     serving        receives the run, sends the outcome
        spawner        starts children         runtime        the Lua state
      conversation   one run's exchange        prelude/*.lua  what scripts can call
        child_process  socket, kill, CPU       operations     Python functions of the prelude
        child_frames   checks each frame
        endings        kind, reply or error

Outside that path: `parent/observer` names the events that a pool reports, `child/surface` lists
everything that a script can reach, `child/system_calls` the calls that its process may make, and
`parent/layers` runs `child/probe`, which tries each layer of the lockdown.
"""
