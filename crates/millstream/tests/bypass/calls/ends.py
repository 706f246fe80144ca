"""Ends of connections, and of descriptors."""
from scene import *


@scene((socket.SHUT_RD,), (socket.SHUT_WR,), (socket.SHUT_RDWR,))
def shut_down(how):
    s = opened("w50 s10 w50 c")
    yield call(s.shutdown, how)
    yield wait(s, select.POLLIN | select.POLLOUT | select.POLLRDHUP, 0)
    if how != socket.SHUT_RD:
        yield call(s.recv, 100) if how == socket.SHUT_WR else "-"


@scene()
def half_closed_by_the_far_end():
    s = opened("s10 h r5 c")
    yield told(all_of(s))
    yield wait(s, select.POLLIN | select.POLLOUT | select.POLLRDHUP, 0)
    yield s.send(b"12345")


@scene()
def linger_of_zero_resets():
    listener = listening(7101)
    ask(f"{NEAR[4]} 7101 e c")
    c = listener.accept()[0]
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    yield c.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8).hex()
    c.close()


@scene(alone=True)
def duplicates_keep_it_open():
    s = opened("o")
    d = s.dup()
    s.close()
    yield d.send(b"abc"), told(d.recv(3, socket.MSG_WAITALL))
    fd = os.dup2(d.fileno(), 99)
    d.close()
    yield fd, os.write(99, b"xy"), told(os.read(99, 10))
    os.close(99)
    yield call(os.write, 99, b"x")


@scene(alone=True)
def closed_descriptor():
    s = opened("o")
    fd = s.fileno()
    s.close()
    yield call(os.read, fd, 1), call(os.write, fd, b"x"), call(os.close, fd)
