"""Runs untrusted Lua in locked-down processes. Knows neither Django nor the rest of the project.

Both sides read `contract` (job, host calls, outcome), `limits`, `protocol` (the frames between
them), `log_area` (the log in shared memory) and `reply_headers`. The way of a run:

    parent/, in the worker, trusted            child/, one process per tenant, untrusted
    pool           the entrance                fork_server    forks it, once per worker
      slots          who may run now           lockdown       takes away its rights
      children       find or make a child      serving        receives the run, sends the answer
        spawner        starts new ones         runtime        a fresh Lua state
      conversation   one run's exchange        prelude/*.lua  what scripts can call
        child_process  socket, kill, CPU       operations     what the prelude asks of Python
        child_frames   checks each frame
        endings        kind, reply or error

Beside that way: `parent/observer` hears what a pool does, `child/surface` lists all that a script
can reach, and `parent/layers` runs `child/probe`, which tries each layer of the lockdown.
"""
