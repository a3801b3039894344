import os
import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxes.runner import frames
from sandboxes.runner.frames import BrokenFrame, Frame, Parser

TAG, OTHER = b"session1", b"session2"
MARKER = bytes(range(200, 232))


def host_parser():
    return Parser(limit_bytes=frames.FROM_RUNNER_LIMIT, tag=TAG)


def runner_parser(marker=MARKER):
    """As a runner has it after its first client said hello."""
    parser = Parser(limit_bytes=frames.FROM_HOST_LIMIT)
    (hello,) = parser.feed(frames.pack_hello(TAG, marker, {"version": 1}))
    assert hello.kind == frames.HELLO
    return parser


def cut(data, seed):
    """`data` in pieces of random sizes."""
    rng, at = random.Random(seed), 0
    while at < len(data):
        n = rng.choice((1, 2, 7, 35, 36, 37, 1000, 100_000))
        yield data[at : at + n]
        at += n


some_frames = st.lists(
    st.builds(
        Frame,
        kind=st.integers(0, 255),
        flags=st.integers(0, 255),
        ref=st.integers(0, 2**32 - 1),
        offset=st.integers(0, 2**64 - 1),
        payload=st.binary(max_size=300),
    ),
    max_size=6,
)


def packed(tag, found):
    return b"".join(frames.pack(tag, f.kind, f.payload, ref=f.ref, offset=f.offset, flags=f.flags) for f in found)


def fed(parser, data, seed=0):
    return [frame for piece in cut(data, seed) for frame in parser.feed(piece)]


@given(some_frames, st.integers(0, 1000))
def test_frames_come_out_as_they_went_in_however_they_are_cut(sent, seed):
    assert fed(host_parser(), packed(TAG, sent), seed) == sent
    assert fed(runner_parser(), packed(TAG, sent), seed) == sent


@given(st.binary(max_size=3000), some_frames, st.integers(0, 1000))
def test_host_skips_what_came_before_its_session(noise, sent, seed):
    """An attach may begin in the middle of what the runner said to somebody else."""
    assert fed(host_parser(), noise + packed(OTHER, sent) + noise + packed(TAG, sent), seed) == sent


@given(st.binary(min_size=1, max_size=200))
def test_host_takes_no_noise_between_frames(noise):
    parser = host_parser()
    list(parser.feed(frames.pack(TAG, frames.PONG)))
    if (frames.MAGIC + TAG).startswith(noise) or noise.startswith(frames.MAGIC + TAG):
        return
    with pytest.raises(BrokenFrame):
        list(parser.feed(noise.ljust(20, b"\0")))


@given(st.binary(max_size=2000), st.integers(0, 1000))
def test_hostile_bytes_raise_one_error_or_wait(noise, seed):
    """Whatever a sandbox says: frames of the session, BrokenFrame, or a wait for more; the buffer stays bounded."""
    parser = host_parser()
    with suppress(BrokenFrame):
        fed(parser, frames.MAGIC + TAG + noise, seed)
    assert len(parser._buffer) <= frames.FROM_RUNNER_LIMIT + frames.HEAD_BYTES


def test_host_refuses_a_length_over_the_limit_before_the_bytes_come():
    parser = host_parser()
    list(parser.feed(frames.pack(TAG, frames.PONG)))
    head = frames.HEADER.pack(frames.MAGIC, TAG, frames.OUT, 1, 0, 1, frames.FROM_RUNNER_LIMIT + 1, 0)
    with pytest.raises(BrokenFrame, match="more than"):
        list(parser.feed(head + bytes(4)))


def test_host_refuses_a_wrong_checksum():
    parser = host_parser()
    list(parser.feed(frames.pack(TAG, frames.PONG)))
    broken = bytearray(frames.pack(TAG, frames.OUT, b"content", ref=1, flags=1))
    for at in (13, 16, 30, len(broken) - 1):
        other = broken.copy()
        other[at] ^= 1
        fresh = host_parser()
        list(fresh.feed(frames.pack(TAG, frames.PONG)))
        with pytest.raises(BrokenFrame):  # at the latest when what a longer length promised has come
            list(fresh.feed(bytes(other) + bytes(400_000)))


@settings(max_examples=1000)
@given(some_frames, st.integers(1, 500), st.integers(0, 1000))
def test_half_a_frame_of_a_dead_client_never_harms_the_next(sent, missing, seed):
    parser = runner_parser()
    # Its last byte is none of the marker's first: else that would end the frame for real, once in 256 times, and only
    # the hello that is said again a second later would be heard.
    long = frames.pack(TAG, frames.DATA, os.urandom(999) + bytes([MARKER[0] ^ 1]), ref=1)
    fed(parser, long[:-missing], seed)
    after = fed(parser, frames.pack_hello(OTHER, MARKER, {"version": 1}) + packed(OTHER, sent), seed)
    assert after[0].kind == frames.HELLO
    assert after[1:] == sent


@given(some_frames)
def test_frames_of_an_older_session_are_not_heard_after_a_new_hello(sent):
    """Late bytes of a client that died come between those of the next."""
    parser = runner_parser()
    hello = frames.pack_hello(OTHER, MARKER, {"version": 1})
    mixed = hello + packed(TAG, sent) + packed(OTHER, sent) + packed(TAG, sent)
    assert fed(parser, mixed)[1:] == sent


def test_late_bytes_between_marker_and_hello_open_no_session():
    parser = runner_parser()
    hello = frames.pack_hello(OTHER, MARKER, {"version": 1})
    forged = frames.pack_message(b"forgedXX", frames.HELLO, {"version": 1}) + frames.pack_request(b"forgedXX", 1, {})
    found = fed(parser, hello[: len(MARKER)] + forged + hello[len(MARKER) :])
    assert [frame.kind for frame in found] == [frames.HELLO]
    assert parser.tag == OTHER


@given(st.binary(max_size=500), some_frames)
def test_content_is_never_taken_for_frames(noise, forged):
    """A file that holds frames, cut off in the middle, followed by a new client."""
    parser = runner_parser()
    evil = noise + frames.pack_hello(b"evilevil", os.urandom(32), {}) + packed(b"evilevil", forged)
    body = frames.pack(TAG, frames.DATA, evil * 3, ref=7)
    found = fed(parser, body[:-5]) + fed(parser, frames.pack_hello(OTHER, MARKER, {"version": 1}))
    assert [frame.kind for frame in found] == [frames.HELLO]


def test_runner_hears_nothing_before_a_hello():
    parser = Parser(limit_bytes=frames.FROM_HOST_LIMIT)
    assert list(parser.feed(MARKER[:10])) == []
    assert list(parser.feed(MARKER[10:] + frames.pack(TAG, frames.PING))) == []


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"1", b'"x"', b"{", b"\xff", b"[" * 100_000, b'{"a":' * 50_000, b"9" * 5000]
)
def test_what_is_no_object_is_a_broken_frame(payload):
    with pytest.raises(BrokenFrame):
        Frame(frames.RESULT, 0, 1, 0, payload).message()


@given(st.binary(max_size=200))
def test_requests_that_are_none_are_broken_frames(payload):
    try:
        message, attached = frames.request_parts(Frame(frames.REQUEST, 0, 1, 0, payload))
    except BrokenFrame:
        return
    assert isinstance(message, dict)
    assert payload.endswith(attached)


def test_request_carries_its_attachments():
    packed_ = frames.pack_request(TAG, 3, {"op": "run"}, b"script", b"stdin")
    (frame,) = host_parser().feed(packed_)
    assert frames.request_parts(frame) == ({"op": "run"}, b"scriptstdin")
