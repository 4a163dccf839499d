"""`python -m posenc`."""

import sys

from posenc.lab.cli import main

sys.exit(main())
