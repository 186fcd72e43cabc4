"""Run the command `lmcourse` as `python -m lmcourse`."""

import sys

from lmcourse.cli import main

sys.exit(main())
