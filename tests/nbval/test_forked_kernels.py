"""A forked kernel is a kernel of its own: it has no other's names, it can be interrupted, and it ends when killed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.nbval.forked_kernels import ForkedKernelManager

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sockets without a file are Linux's")


@pytest.fixture
def kernels(tmp_path: Path) -> Iterator[list[tuple[ForkedKernelManager, Any]]]:
    """Two kernels with their clients, in a folder of their own."""
    found = []
    for _ in range(2):
        manager = ForkedKernelManager()
        manager.start_kernel(cwd=str(tmp_path))
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        found.append((manager, client))
    yield found
    for manager, client in found:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def value(client: Any, expression: str) -> str:
    """What an expression is in a kernel."""
    reply = client.execute("", user_expressions={"it": expression}, reply=True, timeout=30)
    found = reply["content"]["user_expressions"]["it"]
    return found["data"]["text/plain"] if found["status"] == "ok" else found["ename"]


def test_each_has_names_a_folder_and_a_process_of_its_own(kernels: Any, tmp_path: Path) -> None:
    (_, one), (_, other) = kernels
    one.execute("x = 5; import lmcourse, os, sys; lmcourse.x = 6", reply=True, timeout=30)
    assert value(one, "x + lmcourse.x") == "11"
    assert value(other, "x") == "NameError"
    assert value(other, "__import__('lmcourse').x") == "AttributeError"
    assert value(one, "os.getcwd()") == repr(str(tmp_path))
    assert value(one, "'' in sys.path, sys.argv[0].endswith('ipykernel_launcher.py')") == "(True, True)"
    assert value(one, "os.getpid()") != value(other, "__import__('os').getpid()")
    assert value(one, "__name__") == "'__main__'"


def test_no_other_process_can_take_the_place_where_one_listens(kernels: Any) -> None:
    places = [Path(f"{manager.ip}-{port}") for manager, _ in kernels for port in manager.ports]
    assert len({*places}) == 10
    assert all(place.is_socket() for place in places)
    assert {place.parent.stat().st_mode & 0o777 for place in places} == {0o700}


def test_one_is_interrupted_and_goes_on(kernels: Any) -> None:
    (manager, client), _ = kernels
    # After an error a kernel aborts what has come meanwhile, unless it is told not to stop.
    request = client.execute("import time; print('begun'); time.sleep(60)", stop_on_error=False)
    while client.get_iopub_msg(timeout=30)["msg_type"] != "stream":
        pass
    manager.interrupt_kernel()
    reply = client.get_shell_msg(timeout=30)
    assert reply["parent_header"]["msg_id"] == request
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    assert value(client, "1 + 1") == "2"


def test_one_that_is_killed_ends_and_one_that_ends_is_noticed(kernels: Any) -> None:
    (manager, client), (other_manager, other) = kernels
    process = psutil.Process(int(value(client, "__import__('os').getpid()")))
    manager.shutdown_kernel(now=True)
    process.wait(timeout=30)
    other.execute("import os; os._exit(3)")
    end = time.monotonic() + 30
    while other_manager.is_alive():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert other_manager.provisioner.process.returncode == 3
