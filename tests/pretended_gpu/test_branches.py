"""All GPU branches of notebooks are tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pretended_gpu.branches import asking_functions, branches, branching_notebooks
from tests.pretended_gpu.notebooks import WORK

pytestmark = pytest.mark.prove

TAKES_CPU = 'os.environ["LMCOURSE_DEVICE"] = "cpu"'


@pytest.fixture(scope="module")
def asking(course: Path) -> set[str]:
    return asking_functions(course)


def test_each_notebook_has_a_gpu_branch_or_uses_the_cpu(course: Path, asking: set[str]) -> None:
    sources = course.glob("solutions/*/*.py")
    on_cpu = {path.parent.name for path in sources if TAKES_CPU in path.read_text(encoding="utf-8")}
    assert branching_notebooks(course, asking) == {*WORK, *on_cpu}


@pytest.mark.parametrize(
    "code",
    [
        "x = x.cuda()",
        "x = x.to('cuda')",
        "wait = torch.cuda.synchronize",
        "from lmcourse.base.device import best_device\ndevice = best_device()",
        "from lmcourse.base import device as hardware\ndevice = hardware.best_device()",
        "from lmcourse.training.command.train_run import train\ntrain(run, folder)",
        "from lmcourse.bench import bench\nbench.bench()",
    ],
)
def test_a_gpu_branch_is_found(code: str, asking: set[str]) -> None:
    assert branches(code, asking)


@pytest.mark.parametrize("code", ["cuda = 1", "from lmcourse.training.trainer import Trainer\nTrainer(model)"])
def test_code_without_a_gpu_branch_is_not_found(code: str, asking: set[str]) -> None:
    assert not branches(code, asking)
