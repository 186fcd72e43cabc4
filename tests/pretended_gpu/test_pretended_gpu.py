"""Test GPU branches without a GPU: devices, formats, and the number of waits for the device."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from lmcourse.base.device import DEVICE
from tests.pretended_gpu.notebooks import WORK as NOTEBOOKS

STEPS = 3
SOURCE = Path(__file__).with_name("guard.cpp")
COMPILER = shutil.which("c++")

Done = dict[str, dict[str, Any]]
"""The records of each piece of work, by name."""

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="takes a C++ compiler, on Linux"),
    pytest.mark.skipif(
        torch.version.cuda is not None, reason="only a build of torch for CPUs can be made to believe it"
    ),
]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, course: Path) -> Done:
    """The records of each piece of work."""
    guard, home = tmp_path_factory.mktemp("guard") / "guard.so", Path(torch.__file__).parent
    assert COMPILER is not None
    # Without this definition torch's headers include the headers of all operators, which takes 50 % longer.
    flags = ["-shared", "-fPIC", "-O0", "-std=c++20", "-DAT_PER_OPERATOR_HEADERS"]
    flags += [f"-I{home / 'include'}", f"-L{home / 'lib'}"]
    libraries = ["-lc10", "-ltorch_cpu", f"-Wl,-rpath,{home / 'lib'}"]
    subprocess.run([COMPILER, *flags, str(SOURCE), "-o", str(guard), *libraries], check=True)
    command = [sys.executable, "-m", "tests.pretended_gpu.start", str(guard)]
    environment = {name: value for name, value in os.environ.items() if name != DEVICE}
    ran = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result: Done = json.loads(ran.stdout.splitlines()[-1])
    return result


TRAINING = {
    "steps in fp32": "efficient",
    "steps in bf16": "flash",
    "steps in fp16": "flash",
    "steps of muon": "flash",
    "steps of shared heads in bf16": "flash, shared",
    "steps of shared heads in fp32": "efficient",
}
"""The attention kernel in each training run."""

WRITING = {
    "13 tokens": "efficient",
    "13 tokens drawn": "efficient",
    "13 tokens in bf16": "flash",
    "13 tokens of shared heads": "efficient",
    "13 tokens of shared heads in bf16": "flash, shared",
    "13 tokens with windows": "efficient",
    "13 tokens after two prompts": "efficient",
    "13 tokens after two prompts with windows": "efficient",
    "13 tokens from a static cache": "efficient",
    "13 tokens from a static cache after two prompts": "efficient",
}


@pytest.mark.parametrize("name", [*TRAINING, "steps of shared heads with windows"])
def test_a_step_waits_for_the_device_once(done: Done, name: str) -> None:
    """This includes fp16, in which only the device knows if a gradient overflowed."""
    assert done[name]["error"] is None
    assert done[name]["waits"] == STEPS, done[name]["where"]


@pytest.mark.parametrize(("name", "dtype"), [("fp32", "float32"), ("bf16", "bfloat16"), ("fp16", "float16")])
def test_matrix_products_use_the_requested_format(done: Done, name: str, dtype: str) -> None:
    """The exception is RoPE's few angles, which stay in fp32."""
    dtypes = done[f"steps in {name}"]["dtypes"]
    assert max(dtypes, key=dtypes.get) == dtype


@pytest.mark.parametrize(("name", "kernel"), [*TRAINING.items(), *WRITING.items()])
def test_attention_uses_the_expected_kernel(done: Done, name: str, kernel: str) -> None:
    """The kernel that stores the matrix of scores is never used."""
    assert set(done[name]["kernels"]) == {kernel}


def test_windowed_layers_use_a_mask_and_no_flash_kernel(done: Done) -> None:
    assert set(done["steps of shared heads with windows"]["kernels"]) == {"flash, shared", "efficient"}


def test_the_guard_detects_the_math_kernel(done: Done) -> None:
    """Otherwise its absence would prove nothing."""
    assert set(done["heads shared in fp32, unmended"]["kernels"]) == {"math"}


def test_an_evaluation_waits_only_at_its_end(done: Done) -> None:
    for name in ("evaluation of 1 batch", "evaluation of 6 batches"):
        assert done[name]["error"] is None
        assert done[name]["waits"] == 2, done[name]["where"]


def test_the_trainer_waits_only_for_steps_evaluations_and_loading(done: Done) -> None:
    """Its batches come from pinned memory while the program continues."""
    waits = Counter[str]()
    for line, count in done["train and generate"]["where"].items():
        waits[line.split(":")[0]] += count
    assert waits.pop("training/step.py") == 6
    assert waits.pop("training/evaluation.py") == 2 * 3
    loading = {"training/checkpoint_format.py"}
    writing = {"inference/decoding_session.py", "inference/generate.py"}
    assert set(waits) == loading | writing


@pytest.mark.parametrize("name", ["3 tokens", *WRITING])
def test_each_token_waits_for_the_device_once(done: Done, name: str) -> None:
    """Prompts of different lengths also have positions, and with windows the padding must be read."""
    assert done[name]["error"] is None
    prompt = 3 if "two prompts with windows" in name else 2 if "two prompts" in name else 1
    assert done[name]["waits"] == int(name.split()[0]) + prompt, done[name]["where"]


def test_each_beam_search_token_waits_for_the_device_twice(done: Done) -> None:
    """One wait is for floats and one for integers."""
    short, long = (done[f"{count} tokens of a beam"] for count in (3, 13))
    assert short["error"] is None
    assert long["error"] is None
    assert long["waits"] - short["waits"] == 2 * 10, long["where"]


@pytest.mark.parametrize("name", ["logits", "train and generate", "bench", "the default precision", *NOTEBOOKS])
def test_every_gpu_branch_runs_on_the_simulated_device(done: Done, name: str) -> None:
    assert done[name]["error"] is None


def test_a_tensor_on_another_device_is_found(done: Done) -> None:
    assert "same device" in done["tokens left behind"]["error"]
    assert "'cuda' device type for generator but found 'cpu'" in done["dice left behind"]["error"]


def test_every_notebook_that_asks_for_a_device_is_run(course: Path) -> None:
    code = re.compile(r"^[^#\n]*(best_device|cuda)", re.M)
    sources = course.glob("solutions/*/*.py")
    assert {path.parent.name for path in sources if code.search(path.read_text(encoding="utf-8"))} == {*NOTEBOOKS}
