"""Copy a run without its training state: `python -m lmcourse.pretrained.export runs/first models/first`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from lmcourse.base.errors import CourseError
from lmcourse.training.checkpoint_format import MODEL, commit_checkpoint, digest, make_staging_folder, read_manifest
from lmcourse.training.command.run_folder import METRICS, SETTINGS_FILE, TOKENIZER, VALIDATION
from lmcourse.training.command.trained_model import load_trained_model


def export_run(run: Path, out: Path) -> None:
    """Copy a run without the data that only training needs: its text and the optimizer state.

    The copy has settings, tokenizer, metrics, the held-out text, and the weights of the checkpoint with the lowest
    validation loss. It gets its name when it is completely on the disk. Raises CourseError if the run does not exist,
    is damaged, or was written by several processes, or if `out` already exists.
    """
    if out.exists():
        raise CourseError(f"{out} already exists: choose another folder")
    checkpoint = load_trained_model(run).checkpoint
    if not (checkpoint / MODEL).is_file():
        raise CourseError(
            f"{checkpoint} was written by several processes: resume the run with one process, then export it"
        )
    staging = make_staging_folder(out)
    for name in (SETTINGS_FILE, TOKENIZER, METRICS, VALIDATION):
        if (run / name).exists():
            shutil.copyfile(run / name, staging / name)
    copy = staging / "checkpoints" / checkpoint.name
    weights = make_staging_folder(copy)
    shutil.copyfile(checkpoint / MODEL, weights / MODEL)
    manifest = {key: value for key, value in read_manifest(checkpoint).items() if key not in ("version", "sha256")}
    commit_checkpoint(weights, copy, manifest, {MODEL: digest(weights / MODEL)})
    staging.replace(out)


if __name__ == "__main__":
    try:
        run, out = map(Path, sys.argv[1:])
        export_run(run, out)
    except ValueError:
        sys.exit("say which run, and where its copy is to be: python -m lmcourse.pretrained.export RUN OUT")
    except CourseError as error:
        sys.exit(str(error))
