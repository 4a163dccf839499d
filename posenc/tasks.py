"""The name under which tasks are public: `posenc.tasks` is `posenc.lab.tasks`, and so are its modules."""

import sys

from posenc.lab import tasks

_ours = [name for name in sys.modules if f"{name}.".startswith(f"{tasks.__name__}.")]
sys.modules.update({name.replace(".lab", "", 1): sys.modules[name] for name in _ours})
