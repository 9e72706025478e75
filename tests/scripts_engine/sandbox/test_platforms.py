"""The sandbox on platforms that lack a layer, and the imports of the worker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from scripts_engine.sandbox.parent import child_process

PROJECT_ROOT = Path(__file__).resolve().parents[3]
WITHOUT_SECCOMP = """
import json, os, sys
sys.modules["pyseccomp"] = None
from scripts_engine.sandbox.child import lockdown
lockdown.prepare_lock_down()
report = lockdown.lock_down(os.getppid())
sys.stdout.write(json.dumps(report))
"""
WITH_A_BROKEN_COMPILER = """
import json, sys
sys.modules["pyseccomp"] = object()
from scripts_engine.sandbox.child.lockdown import filter_program
try:
    filter_program()
except RuntimeError as error:
    sys.stdout.write(json.dumps(str(error)))
"""
WHAT_THE_FORK_SERVER_IMPORTS = """
import json, sys
from scripts_engine.sandbox.child import fork_server, lockdown
lockdown.prepare_lock_down()
sys.stdout.write(json.dumps(sorted(sys.modules)))
"""
# In this process, modules register their functions as they do in a fork server.
WHAT_RUNS_IN_A_NEW_CHILD = """
import json
from scripts_engine.sandbox.child import fork_server
import random, threading
calls = []
sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name + " " + event))
pid = os.fork()
sys.setprofile(None)
if pid == 0:
    sys.stdout.write(json.dumps([call for call in calls if call.endswith(" call")]))
    sys.stdout.flush()
    os._exit(0)
os.waitpid(pid, 0)
"""
WHAT_THE_WORKER_IMPORTS = """
import json, sys
import scripts_engine.sandbox.parent.pool
sys.stdout.write(json.dumps(sorted(sys.modules)))
"""


def run_python(source):
    done = subprocess.run(
        [sys.executable, "-c", source, str(PROJECT_ROOT)],
        cwd=PROJECT_ROOT,
        capture_output=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_without_seccomp_the_other_layers_still_apply():
    report = run_python(WITHOUT_SECCOMP)
    assert report["seccomp"] is not None
    assert {report[name] for name in ("rlimits", "no_new_privs", "pdeathsig")} == {None}


def test_a_filter_that_cannot_be_compiled_is_not_taken_for_a_missing_layer():
    assert run_python(WITH_A_BROKEN_COMPILER).startswith(
        "the system call filter cannot be compiled"
    )


def test_the_fork_server_does_not_import_the_compiler_of_the_filter():
    modules = run_python(WHAT_THE_FORK_SERVER_IMPORTS)
    assert not {"pyseccomp", "random", "subprocess", "tempfile"} & set(modules)


def test_no_function_of_a_module_runs_in_a_new_child():
    assert run_python(child_process._PREPARE + WHAT_RUNS_IN_A_NEW_CHILD) == []


def test_the_worker_imports_neither_lua_nor_django():
    modules = run_python(WHAT_THE_WORKER_IMPORTS)
    assert not {"lupa", "lupa.lua54", "pyseccomp", "django"} & set(modules)
