"""The name under which tasks are public: `posenc.tasks` is `posenc.lab.tasks`, and so are its modules."""

import sys

_ours = [name for name in sys.modules if f"{name}.".startswith("posenc.lab.tasks.")]
sys.modules.update({name.replace(".lab", "", 1): sys.modules[name] for name in _ours})
