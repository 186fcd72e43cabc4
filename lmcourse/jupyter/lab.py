"""Open the course in JupyterLab on its welcome page, for `lmcourse lab` and `make lab`.

Plain `jupyter lab` would also work, with five options and a search for the URL in its log. This module chooses the
options for the machine: no browser if there is no display, permission for root, no question about news at the first
start, and a short log in which you can see the address. Options that you give override them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from lmcourse.base.errors import CourseError
from lmcourse.grading.config import can_encrypt
from lmcourse.jupyter.course_folder import course_folder
from lmcourse.jupyter.welcome import write_welcome

JUPYTER = Path(__file__).parent
"""Our additions to JupyterLab. There are defaults for its settings: no question about news at the first start, wrapped
long lines of code, all cells of a notebook on the page (by default it adds them while it is idle, and a long notebook
seems to end early), no panel for authors of assignments. An extension gives figures and controls descriptions for
screen readers, and shows the saved picture of a widget if there is no kernel."""

STARTUP = JUPYTER / "startup" / "lmcourse_startup.py"
"""A startup file for kernels, so that a cell of the course that runs before the first one is told so in one line."""


def main(args: Sequence[str] = (), named: Path | None = None) -> int:
    """Start JupyterLab, wait until it ends, and return its exit status.

    Args:
        args: arguments for JupyterLab.
        named: the course's folder; by default the current folder, into which a package from a wheel copies its
            notebooks.
    """
    try:
        course = course_folder(named)
        notebooks = course / "notebooks"
        if not notebooks.is_dir():
            raise CourseError(f"{course} has no notebooks/ yet: run `make build` to make them from solutions/.")
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2
    is_root, page = hasattr(os, "geteuid") and os.geteuid() == 0, write_welcome(notebooks).name
    arguments = jupyter_arguments(args, notebooks, env=os.environ, platform=sys.platform, is_root=is_root, page=page)
    os.environ.update(environment(os.environ))
    os.chdir(course)  # nbgrader reads nbgrader_config.py from the server's working folder

    from jupyterlab.labapp import LabApp

    print("Starting JupyterLab. Ctrl-C here ends it; your work stays in notebooks/.", flush=True)
    LabApp.launch_instance(argv=arguments)
    return 0


def jupyter_arguments(
    args: Sequence[str], notebooks: Path, *, env: Mapping[str, str], platform: str, is_root: bool, page: str
) -> list[str]:
    """Return the command-line arguments for JupyterLab: our defaults, then `args`, which override them.

    Args:
        args: options from the user.
        notebooks: the folder that JupyterLab shows.
        env, platform: environment variables, and the value of `sys.platform`.
        is_root: whether the user is root, which Jupyter rejects by default.
        page: the notebook to open, relative to `notebooks`.
    """
    chosen: list[str] = []
    if not _given(args, "--ServerApp.root_dir", "--ServerApp.notebook_dir", "--notebook-dir"):
        chosen.append(f"--ServerApp.root_dir={notebooks}")
        # Our welcome page is relative to our folder, so it is not used for another folder.
        if not _given(args, "--LabApp.default_url", "--ServerApp.default_url"):
            chosen.append(f"--LabApp.default_url=/lab/tree/{quote(page)}")
    if not _given(args, "--log-level", "--ServerApp.log_level", "--Application.log_level", "--debug"):
        # Routine lines would hide the address, which Jupyter logs as critical.
        chosen.append("--Application.log_level=ERROR")
    if can_encrypt() and not _given(args, "--KernelManager.transport_encryption"):
        # Otherwise each kernel warns in the terminal that its connection is not encrypted.
        chosen.append("--KernelManager.transport_encryption=auto")
    browser_chosen = _given(args, "--no-browser", "--browser", "--ServerApp.open_browser", "--ServerApp.browser")
    if not browser_chosen and not has_display(env, platform):
        chosen.append("--no-browser")
    if is_root and not _given(args, "--allow-root", "--ServerApp.allow_root"):
        chosen.append("--allow-root")
    return [*chosen, *args]


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables for JupyterLab: settings, our extension, and `lmcourse` in its terminals.

    The kernels run our startup file even if the package was not installed but only found, unless you have one yourself.
    """
    ours = {"JUPYTER_CONFIG_PATH": JUPYTER, "JUPYTER_PATH": JUPYTER, "PATH": Path(sys.executable).parent}
    joined = {name: os.pathsep.join([str(first), *filter(None, [env.get(name)])]) for name, first in ours.items()}
    return {"PYTHONSTARTUP": env.get("PYTHONSTARTUP") or str(STARTUP), **joined}


def has_display(env: Mapping[str, str], platform: str) -> bool:
    """Return True if the user would see a browser that is started on this machine."""
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return False
    if platform in ("darwin", "win32"):
        return True
    return bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))


def _given(args: Sequence[str], *options: str) -> bool:
    """Return True if one of these options is given, as `--name value` or `--name=value`."""
    return any(a.split("=", 1)[0] in options for a in args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
