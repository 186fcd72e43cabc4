"""Run `lmcourse train` on several processes: `torchrun --nproc-per-node N -m lmcourse.training …`."""

from __future__ import annotations

import signal
import sys

from lmcourse.base.errors import CourseError
from lmcourse.training.command.main import main
from lmcourse.training.command.train_run import STOPPED

if __name__ == "__main__":
    try:
        status = main(sys.argv[1:], program="lmcourse.training")
        # torchrun sends SIGTERM to all other processes as soon as one has ended.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(status)
    except CourseError as error:
        print(f"lmcourse: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(STOPPED["interrupted"])
