"""Tools for the author of a task: the base class, what draws and lays out examples, and the check.

    from posenc.tasks import Layout, Sizes, Task, gather, index, integers, slots

Files that an older posenc wrote import `posenc.tasks.draw`, `.layout` and `.checks`: the modules of `posenc.lab.tasks`
are found under those names too.
"""

import sys

from posenc.lab import tasks
from posenc.lab.tasks import Batch as Batch
from posenc.lab.tasks import Layout as Layout
from posenc.lab.tasks import Sizes as Sizes
from posenc.lab.tasks import Task as Task
from posenc.lab.tasks import names as names
from posenc.lab.tasks import parse as parse
from posenc.lab.tasks import spec as spec
from posenc.lab.tasks import suite as suite
from posenc.lab.tasks import suites as suites
from posenc.lab.tasks.checks import check as check
from posenc.lab.tasks.draw import FLOAT as FLOAT
from posenc.lab.tasks.draw import INT as INT
from posenc.lab.tasks.draw import between as between
from posenc.lab.tasks.draw import compact as compact
from posenc.lab.tasks.draw import distinct as distinct
from posenc.lab.tasks.draw import distinct_positions as distinct_positions
from posenc.lab.tasks.draw import gather as gather
from posenc.lab.tasks.draw import index as index
from posenc.lab.tasks.draw import inside as inside
from posenc.lab.tasks.draw import integers as integers
from posenc.lab.tasks.draw import last_true as last_true
from posenc.lab.tasks.draw import pick as pick
from posenc.lab.tasks.draw import put as put
from posenc.lab.tasks.draw import total as total
from posenc.lab.tasks.draw import uniforms as uniforms
from posenc.lab.tasks.layout import ended as ended
from posenc.lab.tasks.layout import one_slot as one_slot
from posenc.lab.tasks.layout import prompted as prompted
from posenc.lab.tasks.layout import slots as slots
from posenc.lab.tasks.layout import tagged as tagged
from posenc.lab.tasks.layout import translated as translated
from posenc.lab.tasks.task import BIDIRECTIONAL as BIDIRECTIONAL
from posenc.lab.tasks.task import CAUSAL as CAUSAL

for _name in [name for name in sys.modules if name.startswith(f"{tasks.__name__}.")]:
    sys.modules[_name.replace(".lab", "", 1)] = sys.modules[_name]


def __getattr__(name: str):
    return getattr(tasks, name)
