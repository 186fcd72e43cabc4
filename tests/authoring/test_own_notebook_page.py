"""Whoever follows "A notebook of your own" in docs/authoring.md from an empty folder gets what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.grading.conftest import needs_bubblewrap

pytestmark = [pytest.mark.prove, needs_bubblewrap, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("\n## A notebook of your own\n") : PAGE.index("- The metadata hold data, no code:")]
WRITTEN = {
    "spread": ("raise NotImplementedError", "return numbers[-1] - numbers[0]"),
    "seconds_in_a_week": ("None", "604_800"),
}


def write_answers(notebook: Path) -> None:
    """Write the two answers of step 3, as the page says."""
    assert all(f"`{new}`" in SECTION for _, new in WRITTEN.values())
    read = nbformat.read(notebook, as_version=4)
    for cell in read.cells:
        if cell["id"] in WRITTEN:
            assert WRITTEN[cell["id"]][0] in cell.source
            cell.source = cell.source.replace(*WRITTEN[cell["id"]], 1)
    notebook.write_text(json.dumps(read))


def test_the_page_leads_from_an_empty_folder_to_a_mark(tmp_path: Path) -> None:
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": tools, "PYTHONPATH": str(ROOT)}
    said = ""
    for block in re.finditer(r"```(sh|py)\n(.*?)```", SECTION, re.DOTALL):
        if block[1] == "py":
            file = re.findall(r"`([\w./-]+\.py)`", SECTION[: block.start()])[-1]
            (tmp_path / file).write_text(block[2])
            continue
        for command in block[2].splitlines():
            if command.startswith("jupyter lab "):
                write_answers(tmp_path / command.split()[-1])
                continue
            options = {"capture_output": True, "text": True, "check": False}
            ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, **options)  # type: ignore[call-overload]
            assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
            said += ran.stdout
    said = " ".join(said.split())
    assert said.count("✓") == 5 + 5
    assert "1 / 6" in said
    assert "1 of 6 points" in SECTION
    assert "You take the first and the last number, and the list need not be sorted." in said
    assert "Not answered: RunningMean." in said
    assert {"gradebook.db", "report/report.html"} <= {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
