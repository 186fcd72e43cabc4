"""Render all formulas of the site in one run of Node.js.

sphinxcontrib.katex sends one formula at a time to a server, and waits about 90 ms for each answer: for the 2,300
formulas of twenty chapters 209 of 239 seconds.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from lmcourse.base.errors import CourseError

if TYPE_CHECKING:  # an optional package
    from docutils.nodes import document
    from sphinx.application import Sphinx

NODE = shutil.which("node")
"""Node.js renders the formulas while the site is built; without it a script does so in each reader's browser."""

KATEX_FRACTIONS = {
    sign: "\\tfrac{{{}}}{{{}}}".format(*normalize("NFKD", sign).split("\N{FRACTION SLASH}")) for sign in "½⅓⅔¼¾⅕⅙⅛"
}
"""Signs that KaTeX's fonts do not have, as fractions."""

_SCRIPT = """
const katex = require(process.argv[1]);
const [formulas, macros] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const render = ([latex, displayMode]) =>
  katex.renderToString(latex, { displayMode, macros: { ...macros }, throwOnError: false });
process.stdout.write(JSON.stringify(formulas.map(render)));
"""

Formula = tuple[str, bool]
"""A formula's LaTeX, and True if it is on a line of its own."""


def render_formulas(formulas: list[Formula]) -> list[str]:
    """Return the HTML of each formula. CourseError if Node.js fails."""
    from sphinxcontrib import katex

    asked = json.dumps([formulas, KATEX_FRACTIONS])
    command = [NODE or "node", "-e", _SCRIPT, str(katex.SRC_DIR / "katex.min.js")]
    done = subprocess.run(command, input=asked, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise CourseError(f"Node.js did not render the formulas: {done.stderr.strip()[-300:]}")
    rendered: list[str] = json.loads(done.stdout)
    return rendered


def connect(app: Sphinx) -> None:
    """Let Sphinx collect the formulas of all pages while it reads them, and render them before it writes."""
    from docutils import nodes
    from sphinxcontrib import katex

    found: dict[Formula, str] = {}

    def collect(app: Sphinx, tree: document) -> None:
        for node in tree.findall(lambda node: isinstance(node, nodes.math | nodes.math_block)):
            found[node.astext(), isinstance(node, nodes.math_block)] = ""

    def render(app: Sphinx, env: Any) -> None:
        found.update(zip(found, render_formulas([*found]), strict=True))

    def rendered(latex: str, options: dict[str, Any] | None = None) -> str:
        return found[latex, bool(options)]

    katex.render_latex = rendered
    app.connect("doctree-read", collect)
    app.connect("env-updated", render)
