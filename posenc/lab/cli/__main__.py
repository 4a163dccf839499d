"""`python -m posenc.lab.cli`, which is `posenc`."""

import sys

from posenc.lab.cli import main

sys.exit(main())
