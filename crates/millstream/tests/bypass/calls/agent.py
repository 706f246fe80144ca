"""The far end of sequences.py: does at once what datagrams say, so that nothing depends on time.

Connections have names: aPORT those that it accepted, by the peer's port; oPORT those that it opened, by its own.
"""
import select
import socket
import struct

CONNECTIONS = {}


def accept_all(listener):
    while True:
        try:
            c, peer = listener.accept()
        except OSError:
            return
        c.setblocking(False)
        CONNECTIONS[f"a{peer[1]}"] = c


def drained(c):
    """How many bytes there were, and how they ended."""
    count = 0
    while True:
        try:
            data = c.recv(65536)
        except BlockingIOError:
            return count, "open"
        except OSError:
            return count, "reset"
        if not data:
            return count, "end"
        count += len(data)


def opened(address, port):
    c = socket.socket()
    c.settimeout(0.3)
    try:
        c.connect((address, int(port)))
    except OSError:
        return "refused"
    c.setblocking(False)
    name = f"o{c.getsockname()[1]}"
    CONNECTIONS[name] = c
    return name


def done(words):
    what, name, rest = words[0], words[1], words[2:]
    if what == "open":
        return opened(name, rest[0])
    if what == "clear":
        for c in CONNECTIONS.values():
            c.close()
        CONNECTIONS.clear()
        return "ok"
    c = CONNECTIONS.get(name)
    if c is None:
        return "none"
    try:
        if what == "send":
            return str(c.send(bytes(i % 251 for i in range(int(rest[0])))))
        if what == "half":
            c.shutdown(socket.SHUT_WR)
        elif what == "drain":
            drained(c)
        elif what == "end":
            select.select([c], [], [], 0.2)
            count, how = drained(c)
            # What a reset overtook is lost.
            return f"{how} {count}" if how == "end" else how
        else:
            if what == "reset":
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            CONNECTIONS.pop(name).close()
    except OSError as error:
        return type(error).__name__
    return "ok"


def main():
    listener = socket.create_server(("10.50.0.2", 5003), backlog=200)
    listener.setblocking(False)
    requests = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    requests.bind(("10.50.0.2", 5004))
    print("ready", flush=True)
    while True:
        request, near = requests.recvfrom(1000)
        number, *words = request.decode().split()
        accept_all(listener)
        requests.sendto(f"{number} {done(words)}".encode(), near)


main()
