"""`torchrun --nproc-per-node N -m lmcourse.training …`: `lmcourse train`, by several processes."""

from __future__ import annotations

import signal
import sys

from lmcourse.errors import CourseError
from lmcourse.training.command.main import main
from lmcourse.training.command.train_run import STOPPED

if __name__ == "__main__":
    try:
        status = main(sys.argv[1:], program="lmcourse.training")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun sends it to the others as soon as one has ended
        sys.exit(status)
    except CourseError as error:
        print(f"lmcourse: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(STOPPED["interrupted"])
