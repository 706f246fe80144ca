"""Ends of connections, and of descriptors."""
from scene import *


@scene((socket.SHUT_RD,), (socket.SHUT_WR,), (socket.SHUT_RDWR,))
def shut_down(how):
    s = opened("w50 s10 w50 c")
    yield call(s.shutdown, how)
    yield wait(s, select.POLLIN | select.POLLOUT | select.POLLRDHUP, 0)
    if how != socket.SHUT_RD:
        yield call(s.recv, 100) if how == socket.SHUT_WR else "-"


@scene((socket.SHUT_RD,), (socket.SHUT_RDWR,))
def reading_is_shut_down_before_connect(how):
    s = fresh()
    yield call(s.shutdown, how)
    yield call(s.connect, (FAR[4], 5001))
    yield call(s.recv, 9), wait(s, select.POLLIN | select.POLLOUT | select.POLLRDHUP, 0)
    yield call(s.send, b"s10 w200 s10 e c\n")
    if how == socket.SHUT_RD:
        time.sleep(0.1)
        yield told(s.recv(9)), told(s.recv(9)), told(s.recv(9))
        time.sleep(0.2)
        yield told(s.recv(20)), told(s.recv(9)), call(s.shutdown, socket.SHUT_WR)


@scene()
def writing_is_shut_down_before_connect():
    s = fresh()
    yield call(s.shutdown, socket.SHUT_WR)
    s.setblocking(False)
    yield call(s.connect, (FAR[4], 5001))
    yield wait(s, select.POLLOUT)
    yield call(s.send, b"x"), call(s.recv, 9), wait(s, select.POLLIN | select.POLLOUT | select.POLLRDHUP, 0)
    yield call(s.shutdown, socket.SHUT_WR), call(s.recv, 9)


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


READERS = {"later": ("w500 e c", 20), "too_late": ("w4000 e c", 1), "at_once": ("e c", 20)}


@scene(*[(reads, blocking) for reads in READERS for blocking in (True, False)])
def close_lingers(reads, blocking):
    """Until the peer has acknowledged all, which it does once it reads, or for as long as the option says."""
    words, seconds = READERS[reads]
    s = opened(words, blocking=False)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 200000)
    while reads != "at_once" and call(s.send, bytes(100000)) != "EAGAIN":
        wait(s, select.POLLOUT, 10)
    s.setblocking(blocking)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))
    began = time.monotonic()
    s.close()
    took = time.monotonic() - began
    yield "at once" if took < 0.2 else "a while" if took < 3.5 else "long"


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
