"""A real formgrader on a course, for a browser."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@contextmanager
def formgrader(course: Path, folder: Path) -> Iterator[str]:
    """Start a Jupyter server with formgrader on a course, and yield its address without a path."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    extensions = "{'nbgrader.server_extensions.formgrader': True}"
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--ServerApp.port={port}"]
    command += [f"--ServerApp.jpserver_extensions={extensions}", "--ServerApp.port_retries=0"]
    env = os.environ | {"PYTHONPATH": str(REPOSITORY), "JUPYTER_TOKEN": token}
    env |= {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=course, env=env, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}/api?token={token}", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                assert server.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
        yield f"{address}/{{path}}?token={token}"
    finally:
        server.terminate()
        server.wait(timeout=30)
