"""`python -m lmcourse` is `lmcourse`."""

import sys

from lmcourse.cli import main

sys.exit(main())
