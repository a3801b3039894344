"""The runner's channel: whoever found no room is called when there is some again, whoever made it."""

import subprocess
import sys

from lib.place import CHECKOUT

# Fills the pipe, then empties it by flushes of its own, as the answer to a ping does between two turns of the loop.
SENDER = """
import os, time
from sandboxes.runner import frames
from sandboxes.runner.channel import Channel
from sandboxes.runner.loop import Loop

loop = Loop()
channel = Channel(loop, print, lambda: os._exit(7))
channel._parser.tag = b"t" * frames.TAG_BYTES
while channel.has_room:
    channel.send(frames.CONTENT, bytes(frames.CHUNK_BYTES))
    channel.flush()
while channel._waiting:
    channel.flush()
    time.sleep(0.001)
loop.later(5, lambda: os._exit(1))
loop.run()
"""


def test_senders_are_called_though_another_flush_made_the_room() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SENDER], cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:  # its stdin stays open: the runner takes the end of that for its own
        assert process.stdout
        assert len(process.stdout.read()) > 512 << 10
        assert process.wait(timeout=30) == 7
