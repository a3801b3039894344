from hypothesis import given
from hypothesis import strategies as st

from sandboxes.runner.output import BLOCK_BYTES, HEAD_BYTES, TAIL_BYTES, Output


def stream(start, n):
    """Bytes that tell their own offset."""
    whole = b"".join(i.to_bytes(4, "big") for i in range(start // 4, (start + n) // 4 + 2))
    return whole[start % 4 : start % 4 + n]


def filled(sizes):
    output, at = Output(), 0
    for size in sizes:
        output.append(stream(at, size))
        at += size
    return output


def everything(output, offset=0):
    found = []
    while offset < output.total:
        start, data = output.read(offset, 50_000)
        if not data:
            break
        found.append((start, data))
        offset = start + len(data)
    return found


@given(st.lists(st.integers(0, 700_000), max_size=12), st.integers(0, 9_000_000))
def test_every_kept_byte_stands_at_its_own_offset(sizes, offset):
    output = filled(sizes)
    assert output.total == sum(sizes)
    assert output.kept_bytes <= HEAD_BYTES + TAIL_BYTES + BLOCK_BYTES
    for start, data in everything(output, offset):
        assert start >= offset
        assert data == stream(start, len(data))


@given(st.lists(st.integers(0, 700_000), max_size=12))
def test_head_and_tail_are_kept_and_nothing_is_lost_while_they_hold_all(sizes):
    output = filled(sizes)
    pieces = everything(output)
    ends = sum(len(data) for _, data in pieces)
    if output.total <= HEAD_BYTES + TAIL_BYTES:
        assert ends == output.total
    else:
        assert pieces[0][0] == 0
        assert sum(len(data) for start, data in pieces if start < HEAD_BYTES) >= HEAD_BYTES
        assert output.read(output.total - TAIL_BYTES, 10)[0] == output.total - TAIL_BYTES
        assert pieces[-1][0] + len(pieces[-1][1]) == output.total


def test_a_byte_at_a_time():
    output = Output()
    for n in range(70_000):
        output.append(bytes([n % 251]))
    assert b"".join(data for _, data in everything(output)) == bytes(n % 251 for n in range(70_000))


def test_forgotten_output_goes_on_counting():
    output = filled([100, 200])
    output.forget()
    output.append(b"x" * 50)
    assert (output.total, output.kept_bytes) == (350, 0)
    assert output.read(0, 10) == (350, b"")
