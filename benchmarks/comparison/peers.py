"""Alternatives to Moonhook, with their configurations."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from string import Template
from typing import NamedTuple

from benchmarks.comparison.order import TOKEN, WRONG_TOKEN
from benchmarks.comparison.servers import Server, Size, free_port, serving

HERE = Path(__file__).parent
NODE_RED = HERE / "node_red"
NGINX_LUA = Path("/usr/lib/nginx/modules/ngx_http_lua_module.so")


class Peer(NamedTuple):
    """``hook_path`` has a placeholder for the token; ``lacks`` names what is not installed."""

    name: str
    hook_path: str
    lacks: Callable[[], str]
    serving: Callable[[Path, Size], AbstractContextManager[Server]]

    def hook_of(self, server: Server) -> str:
        return server.url + self.hook_path.format(token=TOKEN)

    def wrong_hook_of(self, server: Server) -> str:
        return server.url + self.hook_path.format(token=WRONG_TOKEN)


def _webhook_lacks() -> str:
    if shutil.which("webhook") is None:
        return "webhook"
    return "" if _has_cjson() else "lua5.4 with lua-cjson"


def _nginx_lacks() -> str:
    is_there = _nginx() and NGINX_LUA.exists() and _has_cjson()
    return "" if is_there else "nginx with libnginx-mod-http-lua and lua-cjson"


def _node_red_lacks() -> str:
    is_there = shutil.which("node") and (NODE_RED / "node_modules").is_dir()
    return "" if is_there else "node with node_modules (npm ci)"


def _nginx() -> str:
    """Finds nginx, which Debian installs outside the PATH of ordinary users."""
    return shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or ""


def _has_cjson() -> bool:
    if shutil.which("lua5.4") is None:
        return False
    asked = ["lua5.4", "-e", 'require "cjson"']
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@contextmanager
def webhook(directory: Path, size: Size) -> Iterator[Server]:
    """adnanh/webhook, which starts Lua for each call."""
    port = free_port()
    hooks = directory / "webhook.json"
    hook = {
        "id": "order",
        "execute-command": str(HERE / "webhook" / "order.lua"),
        "pass-arguments-to-command": [{"source": "entire-payload"}],
        "include-command-output-in-response": True,
        "response-headers": [{"name": "Content-Type", "value": "application/json"}],
        "trigger-rule-mismatch-http-response-code": 403,
        "trigger-rule": {
            "match": {
                "type": "value",
                "value": TOKEN,
                "parameter": {"source": "url", "name": "token"},
            }
        },
    }
    hooks.write_text(json.dumps([hook]))
    command = ["webhook", "-ip", "127.0.0.1", "-port", port, "-hooks", hooks]
    with serving("webhook", command, port=port, log=directory / "webhook.log") as server:
        yield server


@contextmanager
def nginx(directory: Path, size: Size) -> Iterator[Server]:
    """nginx with Lua in its workers."""
    port = free_port()
    configuration = directory / "nginx.conf"
    template = Template((HERE / "nginx" / "nginx.conf").read_text())
    configuration.write_text(
        template.substitute(directory=directory, port=port, token=TOKEN, workers=size.workers)
    )
    command = [_nginx(), "-e", "stderr", "-c", configuration]
    with serving("nginx + Lua", command, port=port, log=directory / "nginx.log") as server:
        yield server


@contextmanager
def node_red(directory: Path, size: Size) -> Iterator[Server]:
    """Node-RED, which runs scripts in its only process."""
    port = free_port()
    user_dir = directory / "node-red"
    user_dir.mkdir()
    shutil.copy(NODE_RED / "flows.json", user_dir)
    program = NODE_RED / "node_modules" / "node-red" / "red.js"
    settings = NODE_RED / "settings.js"
    with serving(
        "Node-RED",
        ["node", program, "--userDir", user_dir, "--settings", settings],
        port=port,
        log=directory / "node-red.log",
        environment=os.environ | {"PORT": str(port), "TOKEN": TOKEN, "NODE_ENV": "production"},
    ) as server:
        yield server


PEERS = (
    Peer("webhook", "/hooks/order?token={token}", _webhook_lacks, webhook),
    Peer("nginx + Lua", "/hook/{token}", _nginx_lacks, nginx),
    Peer("Node-RED", "/hook/{token}", _node_red_lacks, node_red),
)
