"""A PostgreSQL server of the tests' own: a folder, a port of this machine, a password; nothing is left of it."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USER = "teacher"

FIRST = "postgres"
"""The database that every new server has."""

SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
max_connections = 20
fsync = off              # what a test writes need not outlive a power cut
synchronous_commit = off
full_page_writes = off
"""


@dataclass(frozen=True)
class Server:
    """A server that runs.

    Attributes:
        port: of 127.0.0.1.
        password: of `USER`, who may do everything.
    """

    port: int
    password: str

    def url(self, database: str) -> str:
        """The address of a database, as SQLAlchemy and `nbgrader --db` want it."""
        return f"postgresql+psycopg2://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Make an empty database; its address."""
        import psycopg2

        name = f"course_{secrets.token_hex(4)}"
        connection = psycopg2.connect(host="127.0.0.1", port=self.port, user=USER, password=self.password, dbname=FIRST)
        connection.autocommit = True  # no database is made inside of a transaction
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        connection.close()
        return self.url(name)


def find_programs() -> Path | None:
    """The folder of PostgreSQL's programs: on the PATH, or where Debian keeps each version's; None without any."""
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return versions[-1].parent if versions else None


@contextmanager
def running_server(programs: Path) -> Iterator[Server]:
    """A server that is ready when this begins, and stopped at its end, whatever happens between."""
    with tempfile.TemporaryDirectory(prefix="lmcourse-postgres-") as name:
        run = Programs(programs, Path(name), not_root())
        password = secrets.token_urlsafe()
        given = run.folder / "password"
        given.write_text(password)
        if run.user:
            for path in (run.folder, given):
                shutil.chown(path, run.user["user"], run.user["group"])
        options = ["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256", f"--username={USER}"]
        run("initdb", *options, f"--pwfile={given}")
        server = Server(free_port(), password)
        with (run.data / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS.format(port=server.port))
        run("pg_ctl", "start", "--wait")
        try:
            yield server
        finally:
            run("pg_ctl", "stop", "--wait", "--mode=immediate")


@dataclass(frozen=True)
class Programs:
    """PostgreSQL's programs, at work in one folder.

    Attributes:
        programs: where they are.
        folder: what they may write to.
        user: who runs them, as `subprocess` takes it.
    """

    programs: Path
    folder: Path
    user: dict[str, Any]

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def __call__(self, program: str, *arguments: str) -> None:
        """Run one to its end. Raises RuntimeError, with what has been printed so far, if it fails."""
        command = [str(self.programs / program), *arguments, f"--pgdata={self.data}"]
        # A file and not a pipe: the server keeps what pg_ctl printed to, and nobody would see a pipe's end.
        with (self.folder / "log").open("a") as log:
            ended = subprocess.run(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=60, **self.user
            )
        if ended.returncode:
            printed = (self.folder / "log").read_text()
            raise RuntimeError(f"{program} ended with status {ended.returncode}:\n{printed}")


def not_root() -> dict[str, Any]:
    """Somebody who is not root, whom a server refuses to be. Empty if whoever runs the tests is not root either."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return {}
    import pwd  # not on Windows

    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    somebody = known.get("postgres") or known["nobody"]
    return {"user": somebody.pw_uid, "group": somebody.pw_gid, "extra_groups": []}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
