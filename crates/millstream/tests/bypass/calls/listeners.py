"""Listeners."""
from scene import *


@scene(*BOTH)
def accept_and_names(v):
    s = listening(7102, v)
    ask(f"{NEAR[v]} 7102 s5 w100 c", v)
    c, peer = s.accept()
    yield peer[0] == FAR[v], c.getsockname()[:2] == (NEAR[v], 7102), told(c.recv(5, socket.MSG_WAITALL))
    yield c.getblocking(), told(all_of(c))


@scene()
def accept_nonblocking():
    s = listening(7103)
    s.setblocking(False)
    yield call(s.accept)
    ask(f"{NEAR[4]} 7103 w50 c")
    yield wait(s)
    c = s.accept()[0]
    yield wait(s, select.POLLIN, 0), call(s.accept)
    c.close()


@scene()
def accept_times_out():
    s = listening(7104)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50000))
    yield call(s.accept)


@scene()
def calls_on_a_listener():
    s = listening(7105)
    ask(f"{NEAR[4]} 7105 w50 c")
    wait(s)
    yield call(s.recv, 1), call(s.send, b"x"), call(s.getpeername)
    yield s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), s.getsockname()
    yield call(s.accept) != "EINVAL"


@scene()
def address_in_use():
    s = listening(7106)
    t = fresh()
    yield call(t.bind, (NEAR[4], 7106))
    u = fresh()
    u.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    yield call(u.bind, (NEAR[4], 7106)), call(u.listen, 1)


@scene()
def options_are_inherited():
    s = listening(7107)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 77)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 50000)
    wait(s, select.POLLIN, 0)
    ask(f"{NEAR[4]} 7107 w50 c")
    c = s.accept()[0]
    yield c.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    yield c.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    yield c.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
    yield c.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


@scene()
def a_connection_that_was_reset_before_accept():
    s = listening(7108)
    wait(s, select.POLLIN, 0)
    ask(f"{NEAR[4]} 7108 s5 x")
    time.sleep(0.2)
    c = s.accept()[0]
    yield call(c.recv, 10), call(c.recv, 10)


@scene()
def close_with_unread_bytes():
    s = listening(7109)
    ask(f"{NEAR[4]} 7109 s5 e c")
    c = s.accept()[0]
    wait(c)
    yield call(c.close)
