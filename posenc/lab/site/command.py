"""`posenc site` and `posenc open`: the site made of this installation, and a server of it on this machine alone."""

from __future__ import annotations

import functools
import http.server
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from posenc.lab.cli.output import lasting, say

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Site:
    """A site of all schemes, tasks, experiments and guides, which is read without a network.

    It needs the extra docs: pip install 'posenc[docs]'.
    """

    out: Annotated[str, arg(metavar="FOLDER", aliases=["-o"])] = "site"
    """The folder to write; an earlier site in it is replaced."""

    def __call__(self) -> int:
        from posenc.lab.site.build import build

        started, target = time.monotonic(), Path(self.out)
        count = build(target)
        say(f"Wrote {count} pages into {target} in {lasting(time.monotonic() - started)}: open {target}/index.html.")
        return 0


@dataclass(frozen=True)
class Open:
    """A server of the site and of the reports in its folder, on this machine alone, until Ctrl-C."""

    folder: Annotated[str, arg(metavar="FOLDER")] = "site"
    """The folder of the site."""
    port: int = 8000
    """The port; 0 takes a free one."""
    browse: Annotated[bool, arg(help_behavior_hint="")] = False
    """Open a browser too."""

    def __call__(self) -> int:
        server = serve(Path(self.folder), self.port)
        address = f"http://{HOST}:{server.server_address[1]}/"
        print(f"{address} shows {self.folder}; Ctrl-C ends it.", file=sys.stderr, flush=True)
        if self.browse:
            import webbrowser

            webbrowser.open(address)
        with server:
            server.serve_forever()
        return 0


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of one folder: nothing outside of it, also by a link in it, and no list of a folder's files."""

    def log_message(self, *_: object) -> None:
        """Requests are nobody's business."""

    def list_directory(self, path: object) -> None:
        """A folder without a first page is not found."""
        self.send_error(404)

    def send_head(self):
        """Refuse what a link leads to outside of the folder."""
        inside = Path(self.directory).resolve()
        if not Path(self.translate_path(self.path)).resolve().is_relative_to(inside):
            self.send_error(404)
            return None
        return super().send_head()


def serve(folder: Path, port: int) -> http.server.ThreadingHTTPServer:
    """A server of a folder on the loopback. Raises `ValueError` where it has no first page or the port is taken."""
    if not (folder / "index.html").is_file():
        raise ValueError(f"There is no site in {str(folder)!r}; run `posenc site` first.")
    if not 0 <= port < 65536:
        raise ValueError(f"--port is {port}; take a number from 0 to 65535.")
    try:
        return http.server.ThreadingHTTPServer((HOST, port), functools.partial(Handler, directory=str(folder)))
    except OSError as error:
        raise ValueError(f"The port {port} cannot be used: {error.strerror}; give another with --port.") from error
