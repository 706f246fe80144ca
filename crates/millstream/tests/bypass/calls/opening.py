"""Opening connections."""
from scene import *


@scene(*BOTH)
def connect_and_names(v):
    s = fresh(v)
    yield call(s.connect, (FAR[v], 5001))
    yield s.getpeername()[:2] == (FAR[v], 5001), s.getsockname()[0] == NEAR[v]
    yield call(s.connect, (FAR[v], 5001))


@scene(*BOTH)
def connect_refused(v):
    s = fresh(v)
    yield call(s.connect, (FAR[v], 9))
    yield call(s.getpeername)
    yield call(s.send, b"x")


@scene(*BOTH)
def connect_nonblocking(v):
    s = fresh(v)
    s.setblocking(False)
    yield s.connect_ex((FAR[v], 5001))
    yield wait(s, select.POLLOUT)
    yield s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    yield s.connect_ex((FAR[v], 5001))
    yield s.connect_ex((FAR[v], 5001))


@scene(*BOTH)
def connect_nonblocking_refused(v):
    s = fresh(v)
    s.setblocking(False)
    yield s.connect_ex((FAR[v], 9))
    yield wait(s, select.POLLOUT)
    yield s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    yield s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    yield call(s.send, b"x")


@scene(*BOTH)
def connect_bound(v):
    s = fresh(v)
    s.bind((NEAR[v], 0))
    port = s.getsockname()[1]
    yield call(s.connect, (FAR[v], 5001)), s.getsockname()[1] == port


@scene()
def connect_unspecified_port():
    s = fresh()
    yield call(s.connect, (FAR[4], 0))


@scene()
def unconnected():
    s = fresh()
    yield call(s.send, b"x"), call(s.recv, 1), call(s.shutdown, 1), call(s.getpeername)
    yield wait(s, select.POLLIN | select.POLLOUT, 0)
