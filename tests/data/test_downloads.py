"""Download from a local server: once, completely and checked, with one line for each error."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.data import downloads
from lmcourse.data.downloads import Download, cache_folder, fetch

CONTENT = b"To be, or not to be" * 200_000
"""A file larger than the downloader's chunks."""


@dataclass
class Server:
    """A server on this machine, with its answers and the received requests."""

    address: str = ""
    body: bytes = CONTENT
    promised: int = len(CONTENT)
    asked: list[str] = field(default_factory=list)

    @property
    def download(self) -> Download:
        return Download("hamlet.txt", f"{self.address}/hamlet", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            self.send_response(200 if self.path == "/hamlet" else 404)
            self.send_header("Content-Length", str(state.promised))
            self.end_headers()
            with suppress(ConnectionError):  # the downloader may close the connection first
                self.wfile.write(state.body)

        def log_message(self, *_: object) -> None:
            """Print no log messages on stderr."""

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        state.address = f"http://127.0.0.1:{http.server_port}"
        yield state
        http.shutdown()
        thread.join()


def test_a_file_is_fetched_once_and_again_if_it_differs(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there yet"
    place = fetch(server.download, folder)
    assert place == folder / "hamlet.txt"
    assert place.read_bytes() == CONTENT
    assert fetch(server.download, folder) == place
    assert server.asked == ["/hamlet"]
    assert list(folder.iterdir()) == [place], "nothing temporary stays"
    place.write_bytes(CONTENT[:-1] + b"?")
    fetch(server.download, folder)
    assert place.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("body", "promised"),
    [(CONTENT[:-1] + b"?", len(CONTENT)), (CONTENT[:-1], len(CONTENT)), (b"", 0), (CONTENT * 3, 3 * len(CONTENT))],
    ids=["other contents", "cut off", "empty", "longer"],
)
def test_an_unexpected_file_is_rejected(server: Server, tmp_path: Path, body: bytes, promised: int) -> None:
    server.body, server.promised = body, promised
    with pytest.raises(CourseError, match="did not send the expected file") as error:
        fetch(server.download, tmp_path)
    assert str(tmp_path / "hamlet.txt") in str(error.value)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_stop_sending_is_cut_off(server: Server, tmp_path: Path) -> None:
    server.body, server.promised = CONTENT * 10, 10 * len(CONTENT)
    with pytest.raises(CourseError, match="did not send the expected file") as error:
        fetch(server.download, tmp_path)
    received = re.search(r"([\d,]+) bytes", str(error.value))
    assert received
    assert int(received[1].replace(",", "")) < 2 * len(CONTENT)


def test_a_server_error_is_reported(server: Server, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="answers 404 Not Found"):
        fetch(replace(server.download, url=f"{server.address}/macbeth"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_connection_is_reported(server: Server, tmp_path: Path) -> None:
    nobody = replace(server.download, url="http://127.0.0.1:9/hamlet")
    with pytest.raises(CourseError, match="cannot be reached") as error:
        fetch(nobody, tmp_path)
    assert f"put it at {tmp_path / 'hamlet.txt'}" in str(error.value)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_folder_that_is_a_file_is_reported(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CourseError, match="cannot be read or written"):
        fetch(server.download, tmp_path / "file")


@pytest.mark.parametrize(
    ("system", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "set/lmcourse"),
        ("linux", None, "home/.cache/lmcourse"),
        ("darwin", None, "home/Library/Caches/lmcourse"),
        ("win32", "LOCALAPPDATA", "set/lmcourse"),
        ("win32", None, "home/AppData/Local/lmcourse"),
    ],
)
def test_the_cache_folder_follows_each_systems_convention(
    system: str, variable: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "set"))
    monkeypatch.setattr(downloads.sys, "platform", system)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert cache_folder() == tmp_path / expected


def test_the_cache_folder_is_the_default(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "cache_folder", lambda: tmp_path)
    assert fetch(server.download).parent == tmp_path
