"""Serves the site on a free port, and prints it."""

import signal

from console.address import bind
from console.server import Server
from console.workspaces import bus

from . import site


def main() -> None:
    server = Server(site.application, bound=(bound := bind("127.0.0.1", 0)), before_stop=bus.close)
    server.http_factory.timeOut = site.settings.IDLE_S
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    server.run(ready=lambda: print(bound.getsockname()[1], flush=True))


if __name__ == "__main__":
    main()
