"""The image, built from the Dockerfile without an engine, and run as compose.yaml runs it.

Debian's buildah builds it; debootstrap makes the base under the name that the Dockerfile gives it,
because a test cannot ask a registry of images.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.eventually import eventually
from tests.moonhook_server import ROOT
from tests.servers import free_port
from tests.size import IS_FULL

PROGRAMS = ("buildah", "debootstrap", "unshare", "chroot", "git")
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
MISSING = [name for name in PROGRAMS if shutil.which(name, path=SEARCHED) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_FULL, reason="builds an image: TEST_SIZE=full"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap and chroot need root"),
]
USER = "10001"
BASE, SUITE = "python:3.13-slim-trixie", "trixie"
PAYLOAD = b'{"items": [{"quantity": 2, "price": 4.5}]}'
# What compose.yaml gives a container, by the system's own programs: a read-only root with /data and
# /tmp, no capabilities, no new privileges, and none of this process's environment.
ENTER = """
root=$1 data=$2; shift 2
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$data" "$root/data"
mount -o remount,ro,bind "$root"
exec chroot "$root" setpriv --reuid="$USER_ID" --regid="$USER_ID" --clear-groups \
    --no-new-privs --bounding-set=-all --inh-caps=-all env -C /app -i "$@"
"""


def run(*command: str, cwd: Path = ROOT) -> str:
    finished = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | {"PATH": SEARCHED},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, f"{command[0]}: {(finished.stderr or finished.stdout)[-3000:]}"
    return finished.stdout


class Builder:
    """Images in a storage of their own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        places = ("--root", str(directory / "storage"), "--runroot", str(directory / "run"))
        self._buildah = ("buildah", "--storage-driver", "vfs", *places)
        self.wheels = directory / "wheels"

    def buildah(self, *arguments: str, cwd: Path = ROOT) -> str:
        return run(*self._buildah, *arguments, cwd=cwd).strip()

    def make_base(self) -> None:
        """Debian with its Python, which finds the locked packages in a directory."""
        base = self._directory / "base"
        packages = "python3,python3-venv,ca-certificates"
        run("debootstrap", "--variant=minbase", f"--include={packages}", SUITE, str(base))
        (base / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        (base / "etc/pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
        container = self.buildah("from", "scratch")
        self.buildah("add", container, str(base), "/")
        self.buildah("commit", "--rm", container, BASE)
        shutil.rmtree(base)

    def download_packages(self) -> None:
        download = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
        place = ("--dest", str(self.wheels))
        locked = ("--require-hashes", "--requirement", "requirements/runtime.txt")
        run(*download, *place, "--python-version", "3.13", *locked)
        # Some of the locked packages are built where they are installed.
        run(*download, *place, "setuptools", "wheel")

    def build(self, source: Path, name: str) -> None:
        volume = f"{self.wheels}:/wheels:ro"
        options = ("--isolation", "chroot", "--pull-never", "--format", "docker")
        self.buildah("bud", *options, "--volume", volume, "--tag", name, ".", cwd=source)

    @contextmanager
    def container(self, name: str) -> Iterator["Container"]:
        container = self.buildah("from", "--pull-never", f"localhost/{name}")
        inspected = json.loads(self.buildah("inspect", "--type", "image", f"localhost/{name}"))
        try:
            root = Path(self.buildah("mount", container))
            yield Container(root, inspected["Docker"]["config"])
        finally:
            self.buildah("rm", container)


@dataclass
class Container:
    root: Path
    configuration: dict[str, object]

    def command(self, data: Path, *arguments: str, **environment: str) -> list[str]:
        own = [f"{name}={value}" for name, value in environment.items()]
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc"]
        enter += [ENTER.replace("$USER_ID", USER), "-", str(self.root), str(data)]
        return [*enter, *self.configuration["Env"], *own, *arguments]  # type: ignore[misc]

    def run(self, data: Path, *arguments: str) -> str:
        return run(*self.command(data, *arguments, MOONHOOK_ENV="development"))

    @contextmanager
    def serving(self, data: Path) -> Iterator["Served"]:
        """The image's entry point as a development server, which creates the demo."""
        port, log = free_port(), data.parent / "serve.log"
        entry: list[str] = self.configuration["Entrypoint"]  # type: ignore[assignment]
        own = {"MOONHOOK_ENV": "development", "PORT": str(port), "BIND": "127.0.0.1"}
        with log.open("w") as output:
            process = subprocess.Popen(
                self.command(data, *entry, "serve", **own),
                env={"PATH": SEARCHED},
                stdout=output,
                stderr=output,
            )
        served = Served(f"http://127.0.0.1:{port}", log)
        try:
            eventually(served.is_ready)
            yield served
        finally:
            # unshare passes no signal on; its only child is the server.
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            run("kill", "-TERM", *children.split())
            assert process.wait(timeout=120) == 0, log.read_text()


@dataclass
class Served:
    url: str
    log: Path

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def demo_path(self) -> str:
        found = re.search(r"curl http://[^/]+(/hook/\S+)", self.log.read_text())
        assert found is not None, self.log.read_text()
        return found[1]

    def call(self, path: str) -> object:
        with urlopen(Request(self.url + path, PAYLOAD), timeout=30) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    directory = tmp_path_factory.mktemp("image")
    builder = Builder(directory)
    builder.download_packages()
    builder.make_base()
    builder.build(ROOT, "moonhook")
    yield builder
    shutil.rmtree(directory)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir(mode=0o700)
    os.chown(path, int(USER), int(USER))
    return path


def test_the_image_says_how_it_runs(builder: Builder) -> None:
    with builder.container("moonhook") as container:
        configuration = container.configuration
        version = run("chroot", str(container.root), "/venv/bin/python", "--version")

    assert version.startswith("Python 3.13.")
    assert configuration["User"] == "moonhook"
    assert configuration["Entrypoint"] == ["/venv/bin/python", "manage.py"]
    assert configuration["StopSignal"] == "SIGTERM"
    assert configuration["Healthcheck"]["Test"][0] == "CMD"  # type: ignore[index]


def test_its_root_is_read_only_and_its_user_has_no_rights(builder: Builder, data: Path) -> None:
    script = "id -u; touch /app/x || echo refused; touch /data/x /tmp/x; grep CapBnd /proc/1/status"
    with builder.container("moonhook") as container:
        output = container.run(data, "sh", "-c", script)

    assert output.split() == [USER, "refused", "CapBnd:", "0" * 16]


def test_every_attack_on_the_sandbox_fails_inside(builder: Builder, data: Path) -> None:
    with builder.container("moonhook") as container:
        output = container.run(data, "/venv/bin/python", "manage.py", "check_sandbox")
    passed = re.findall(r"(\d+) of (\d+) attacks ended as expected", output)[0]

    assert passed[0] == passed[1]
    assert int(passed[1]) > 200


def test_it_serves_and_upgrades_the_data_of_the_commit_before(
    builder: Builder, data: Path, tmp_path: Path
) -> None:
    before = tmp_path / "before"
    before.mkdir()
    run("git", "archive", "--output", str(tmp_path / "before.tar"), "HEAD~1")
    run("tar", "--extract", "--file", str(tmp_path / "before.tar"), "--directory", str(before))
    # Only what the base is called may differ.
    dockerfile = before / "Dockerfile"
    dockerfile.write_text(re.sub(r"python:\S+", BASE, dockerfile.read_text()))
    builder.build(before, "moonhook-before")
    with builder.container("moonhook-before") as old, old.serving(data) as served:
        path = served.demo_path()
        first = served.call(path)
    with builder.container("moonhook") as new, new.serving(data) as served:
        second = served.call(path)

    assert first == second == {"items": 1, "total": 9.0}
