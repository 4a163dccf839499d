"""`python -m posenc.lab.cli`, which is `posenc`."""

import sys

from posenc.lab.cli import listening, main

with listening(sys.argv[1:]):
    code = main()
sys.exit(code)
