"""Runs in a namespace or in a sandbox, by itself: services that answer, and probes that say which do. Standard library
only. `probes.py serve '[["", "10.9.0.2", 80]]'`: namespace or none, address, port; for both TCP and UDP.
`probes.py probe '[["tcp", "10.9.0.2", 80], ["icmp", "10.9.0.2", 0]]'`."""

import ctypes
import json
import selectors
import socket
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

WAIT_S = 1.5


def enter(space):
    """Sockets made from now on are in that namespace, whoever uses them."""
    with open(f"/run/netns/{space}" if space else "/proc/self/ns/net") as file:
        if space and ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), space)


def serve(where):
    ready = selectors.DefaultSelector()
    for space, address, port in sorted(where):  # its own, without a name, comes first
        enter(space)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            sock = socket.socket(family, kind)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, port))
            if kind == socket.SOCK_STREAM:
                sock.listen(64)
            ready.register(sock, selectors.EVENT_READ)
    print("serving", flush=True)
    held = []
    while True:
        for key, _ in ready.select():
            if key.fileobj.type == socket.SOCK_DGRAM:
                data, peer = key.fileobj.recvfrom(2048)
                key.fileobj.sendto(b"here " + data, peer)
            elif key.fileobj in held:
                data = key.fileobj.recv(2048)
                key.fileobj.sendall(data)
                if not data or data.startswith(b"GET "):
                    ready.unregister(key.fileobj)
                    held.remove(key.fileobj)
                    key.fileobj.close()
            else:
                peer, _ = key.fileobj.accept()
                held.append(peer)
                ready.register(peer, selectors.EVENT_READ)
                peer.sendall(b"here ")


def answer_names(space, address, zone):
    """A name server: addresses for the names in `zone`, one after the other at each question, and no such name."""
    enter(space)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, 53))
    print("serving", flush=True)
    while True:
        asked, peer = sock.recvfrom(512)
        labels, at = [], 12
        while asked[at]:
            labels.append(asked[at + 1 : at + 1 + asked[at]].decode())
            at += 1 + asked[at]
        question, found = asked[12 : at + 5], zone.get(".".join(labels).lower())
        is_a = question[-4:-2] == b"\0\1"
        head = asked[:2] + struct.pack("!HHHHH", 0x8180 if found else 0x8183, 1, int(bool(found and is_a)), 0, 0)
        answer = b""
        if found and is_a:
            found.append(found.pop(0))
            answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + socket.inet_aton(found[-1])
        sock.sendto(head + question + answer, peer)


def probe(kind, address, port):
    try:
        return {"tcp": tcp, "udp": udp, "icmp": icmp}[kind](address, port)
    except OSError:
        return False


def tcp(address, port):
    with socket.create_connection((address, port), timeout=WAIT_S) as sock:
        return sock.recv(5) == b"here "


def udp(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(WAIT_S)
        sock.connect((address, port))
        sock.send(b"?")
        return sock.recv(64) == b"here ?"


def icmp(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as sock:
        sock.settimeout(WAIT_S)
        sock.connect((address, 0))
        head = struct.pack("!BBHHH", 8, 0, 0, 0, 1)
        total = sum(struct.unpack("!6H", head + b"ping"))
        total = (total & 0xFFFF) + (total >> 16)
        sock.send(struct.pack("!BBHHH", 8, 0, ~total & 0xFFFF, 0, 1) + b"ping")
        return sock.recv(64)[:1] == b"\0"


def probes(targets):
    with ThreadPoolExecutor(32) as threads:
        answers = threads.map(lambda target: probe(*target), targets)
        return {" ".join(str(word) for word in target): answer for target, answer in zip(targets, answers, strict=True)}


if __name__ == "__main__":
    verb, words = sys.argv[1], json.loads(sys.argv[2])
    if verb == "serve":
        serve(words)
    elif verb == "names":
        answer_names(*words)
    else:
        print(json.dumps(probes(words)))
