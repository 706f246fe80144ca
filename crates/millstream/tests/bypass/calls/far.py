"""The far end of main.py: does what the first line of each connection says.

Words, one after the other: sN sends N bytes; wN waits N milliseconds; rN reads N bytes; e reads to the end;
c closes; x resets; f says by a byte whether the SYN had data; h half-closes; o echoes until the end; k ADDRESS PORT WORDS… connects there and goes on with the rest.
"""
import socket
import struct
import sys
import threading
import time


# Of `tcpi_options`.
SYN_DATA = 32


def act(c, words):
    while words:
        word = words.pop(0)
        kind, number = word[0], int(word[1:] or 0)
        if kind == "s":
            c.sendall(bytes(i % 251 for i in range(number)))
        elif kind == "w":
            time.sleep(number / 1000)
        elif kind == "r":
            while number > 0:
                number -= len(c.recv(number)) or number
        elif kind == "e":
            while c.recv(65536):
                pass
        elif kind == "o":
            while data := c.recv(65536):
                c.sendall(data)
        elif kind == "f":
            options = c.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[5]
            c.sendall(b"\1" if options & SYN_DATA else b"\0")
        elif kind == "h":
            c.shutdown(socket.SHUT_WR)
        elif kind == "x":
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            break
        elif kind == "k":
            address, port = words.pop(0), int(words.pop(0))
            far = socket.create_connection((address, port), timeout=5)
            act(far, words)
            words = []
    c.close()


def serve(c):
    try:
        line = b""
        while not line.endswith(b"\n"):
            byte = c.recv(1)
            if not byte:
                break
            line += byte
        act(c, line.decode().split())
    except OSError:
        c.close()


def keep_silent(port):
    """Has a port drop what asks for connections: its listener's queue is full."""
    s = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=0)
    kept = [s]
    for _ in range(3):
        c = socket.socket(socket.AF_INET6)
        c.setblocking(False)
        c.connect_ex(("::1", port))
        kept.append(c)
    time.sleep(0.05)
    return kept


def main():
    _kept = keep_silent(5002)
    s = socket.create_server(("::", 5001), family=socket.AF_INET6, dualstack_ipv6=True, backlog=200)
    # Takes data in SYNs, and gives cookies for that.
    with open("/proc/sys/net/ipv4/tcp_fastopen", "w") as setting:
        setting.write("3")
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 100)
    print("ready", flush=True)
    while True:
        c = s.accept()[0]
        threading.Thread(target=serve, args=(c,), daemon=True).start()


main()
