"""The code blocks of docs/library.md run as printed, and need only the packages that the page installs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)

LIST_PACKAGES = """
import sys
print("packages:", *{name.partition(".")[0] for name in sys.modules})
"""


def test_every_code_block_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, "library.md", "exec"), names)
    said = capsys.readouterr().out
    loss = re.search(r"^(\d\.\d\d) nats per byte$", said, re.M)
    assert loss
    assert abs(float(loss[1]) - 2.0) < 0.1
    assert said.count("The ") >= 2
    assert "True\n8,030,261,248 parameters" in said


@pytest.mark.prove
def test_the_page_needs_only_the_packages_that_it_installs(course: Path, tmp_path: Path) -> None:
    program = "\n".join([*BLOCKS, LIST_PACKAGES])
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = {*done.stdout.rpartition("packages:")[2].split()}
    project = tomllib.loads((course / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[^\w.-]", line)[0].replace("-", "_") for line in project["dependencies"]}
    (installed,) = re.findall(r"^python -m pip install (torch .+)$", PAGE, re.M)
    with_torch = {"filelock"}  # packages that torch installs
    assert (loaded & declared) - with_torch == {*installed.replace("-", "_").split()}
