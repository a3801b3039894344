"""The runner's file steps on this machine: in the calling thread, with its rights, and nobody held still."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sandboxes.runner import asked
from sandboxes.runner.files import Transfer
from sandboxes.runner.guarding import Guard
from sandboxes.runner.publishing import Publisher
from sandboxes.runner.stillness import Moment
from sandboxes.runner.versions import Versions


class Alone:
    """Instead of a World. `before_last_look` is called when all would be still but for what it does."""

    def __init__(self) -> None:
        self.before_last_look: Callable[[], None] = lambda: None
        self.is_written = False
        self.moments = 0

    @contextmanager
    def still(self) -> Iterator[Moment]:
        self.moments += 1
        self.before_last_look()
        yield Moment()

    def writes(self, file: Any) -> bool:
        return self.is_written


class OnHost:
    """Instead of a Pool, its loop and its host: an answer is there when the request has been made."""

    def __init__(self) -> None:
        self.loop = self
        self.guard = Guard()
        self.versions = Versions()
        self.world = Alone()
        self.publisher = Publisher(self.world)  # type: ignore[arg-type]

    def post(self, call: Callable[[], None]) -> None:
        call()

    def changed(self) -> None:
        pass

    def ready(self, transfer: Transfer) -> None:
        transfer.run_steps()

    def tell(self, transfer: Transfer, kind: int, offset: int) -> None:
        pass

    def look(self, op: str, attached: bytes = b"", **message: Any) -> dict[str, Any]:
        """The facts, and all content; or the error."""
        transfer = asked.LOOKS[op](self, 1, message, attached)  # type: ignore[arg-type]
        sent: list[tuple[int, Any]] = []

        def send(kind: int, payload: Any, **fields: Any) -> None:
            sent.append((kind, payload))
            if isinstance(payload, bytes):
                transfer.acked(0, fields["offset"] + len(payload))

        while transfer.produce(send):
            pass
        result = sent[-1][1]
        if "error" in result:
            return dict(result)
        return {"info": sent[0][1], "content": b"".join(data for _, data in sent if isinstance(data, bytes))}

    def change(self, op: str, attached: bytes = b"", **message: Any) -> dict[str, Any]:
        transfer = asked.CHANGES[op](self, 1, {"id": "act", **message}, attached)  # type: ignore[arg-type]
        assert transfer.result is not None
        return transfer.result

    def write(self, path: str, content: bytes, **message: Any) -> dict[str, Any]:
        message = {"mode": None, "size": None, **message}
        transfer: Any = asked.CHANGES["write"](self, 1, {"id": "act", "path": path, **message}, b"")  # type: ignore[arg-type]
        transfer.content(content, last=True)
        return dict(transfer.result)
