"""Build steps that pyproject.toml cannot express: a wheel includes the student notebooks from outside the package, and
an environment gets a startup file for IPython."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CARRIED = (*sorted(Path("notebooks").glob("[0-9]*/*.ipynb")), Path("nbgrader_config.py"))


class BuildWithNotebooks(build_py):
    """Copies the notebooks into the package; an editable installation finds them in their place.

    Setuptools leaves data files out of an editable installation, so they are installed here.
    """

    def run(self) -> None:
        """Build the package, then add the notebooks."""
        super().run()
        if self.editable_mode:
            self.run_command("install_data")
        else:
            for path, target in self._carried().items():
                target.parent.mkdir(parents=True, exist_ok=True)
                self.copy_file(str(path), str(target))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return all built files, including the notebooks."""
        return [*super().get_outputs(include_bytecode), *map(str, self._carried().values())]

    def _carried(self) -> dict[Path, Path]:
        return {path: Path(self.build_lib, "lmcourse", "course_folder", path) for path in CARRIED}


STARTUP = "lmcourse/jupyter/startup/lmcourse_startup.py"

setup(cmdclass={"build_py": BuildWithNotebooks}, data_files=[("etc/ipython/startup", [STARTUP])])
