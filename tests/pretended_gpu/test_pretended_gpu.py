"""The GPU's branches on a machine without one: devices, formats, and how often the program waits for the device."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

STEPS = 3
SOURCE = Path(__file__).with_name("guard.cpp")
COMPILER = shutil.which("c++")

pytestmark = [
    pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="takes a C++ compiler, on Linux"),
    pytest.mark.skipif(
        torch.version.cuda is not None, reason="only a build of torch for CPUs can be made to believe it"
    ),
]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, course: Path) -> dict[str, dict[str, Any]]:
    """What was seen of each piece of work."""
    guard, home = tmp_path_factory.mktemp("guard") / "guard.so", Path(torch.__file__).parent
    assert COMPILER is not None
    flags = ["-shared", "-fPIC", "-O0", "-std=c++20", f"-I{home / 'include'}", f"-L{home / 'lib'}"]
    libraries = ["-lc10", "-ltorch_cpu", f"-Wl,-rpath,{home / 'lib'}"]
    subprocess.run([COMPILER, *flags, str(SOURCE), "-o", str(guard), *libraries], check=True)
    command = [sys.executable, "-m", "tests.pretended_gpu.start", str(guard)]
    ran = subprocess.run(command, cwd=course, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result: dict[str, dict[str, Any]] = json.loads(ran.stdout.splitlines()[-1])
    return result


TRAINING = {
    "steps in fp32": 1,
    "steps in bf16": 1,
    "steps of grouped queries with windows": 1,
    "steps of muon": 1,
    "steps in fp16": 1,  # whether a gradient overflowed is known on the device only
}
"""How often a step waits."""


@pytest.mark.parametrize("name", TRAINING)
def test_a_step_looks_at_the_device_once(done: dict[str, dict[str, Any]], name: str) -> None:
    assert done[name]["error"] is None
    assert done[name]["waits"] == TRAINING[name] * STEPS, done[name]["where"]


@pytest.mark.parametrize(("name", "dtype"), [("fp32", "float32"), ("bf16", "bfloat16"), ("fp16", "float16")])
def test_matrix_products_have_the_format_that_was_asked_for(
    done: dict[str, dict[str, Any]], name: str, dtype: str
) -> None:
    """But RoPE's few angles, which stay fp32."""
    dtypes = done[f"steps in {name}"]["dtypes"]
    assert max(dtypes, key=dtypes.get) == dtype


def test_an_evaluation_waits_at_its_end_however_long_it_is(done: dict[str, dict[str, Any]]) -> None:
    for name in ("evaluation of 1 batch", "evaluation of 6 batches"):
        assert done[name]["error"] is None
        assert done[name]["waits"] == 2, done[name]["where"]


@pytest.mark.parametrize("name", ["3 tokens", "13 tokens", "13 tokens with a window", "13 tokens drawn"])
def test_a_token_takes_one_wait_and_the_prompt_none(done: dict[str, dict[str, Any]], name: str) -> None:
    assert done[name]["error"] is None
    assert done[name]["waits"] == int(name.split()[0]), done[name]["where"]


def test_beam_search_runs(done: dict[str, dict[str, Any]]) -> None:
    """Four waits a token (texts that end, rows that go on, with what, whether one can still win), one at the end."""
    assert done["a beam"]["error"] is None
    assert done["a beam"]["waits"] == 4 * 5 + 1, done["a beam"]["where"]


def test_training_is_in_bf16_where_the_card_has_it(done: dict[str, dict[str, Any]]) -> None:
    assert done["the default"]["error"] is None


def test_a_tensor_on_another_device_is_found(done: dict[str, dict[str, Any]]) -> None:
    assert "same device" in done["tokens left behind"]["error"]
