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


def listening_anywhere(backlog=5, v=4, address=None):
    s = fresh(v)
    s.bind((address or NEAR[v], 0))
    s.listen(backlog)
    wait(s, select.POLLIN, 0)
    return s


def port_of(s):
    return s.getsockname()[1]


@scene(("0.0.0.0", 4), (NEAR[4], 4), ("::", 6), (NEAR[6], 6))
def accept_at(address, v):
    s = listening_anywhere(5, v, address)
    ask(f"{NEAR[v]} {port_of(s)} s5 c", v)
    c, peer = s.accept()
    yield peer[0], len(peer), c.getsockname()[0], c.getpeername()[0], told(all_of(c))


@scene()
def accept_of_ipv4_at_a_dual_listener():
    s = listening_anywhere(5, 6, "::")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 3, 0))
    ask(f"{NEAR[4]} {port_of(s)} s5 c")
    c, peer = s.accept()
    yield peer[0], len(peer), c.getsockname()[0], c.getpeername()[0], c.getsockopt(socket.SOL_SOCKET, 39)


@scene()
def accept_of_loopback_beside_the_stack():
    s = listening_anywhere(5, 4, "0.0.0.0")
    c = fresh()
    c.connect(("127.0.0.1", port_of(s)))
    a, peer = s.accept()
    yield peer[0], a.send(b"abc"), told(c.recv(3)), wait(s, select.POLLIN, 0)
    ask(f"{NEAR[4]} {port_of(s)} s5 c")
    yield s.accept()[1][0]


@scene(("shutdown",), ("close",))
def listener_ends_with_waiting_connections(how):
    s = listening_anywhere()
    ask(f"{NEAR[4]} {port_of(s)} e c")
    wait(s)
    if how == "close":
        s.close()
    else:
        yield call(s.shutdown, socket.SHUT_RDWR), wait(s, select.POLLIN | select.POLLOUT, 0)
        s.setblocking(False)
        yield call(s.accept), s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        yield call(s.listen, 5), s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


@scene()
def listens_again_with_another_backlog():
    s = listening_anywhere(1)
    yield call(s.listen, 100)
    for _ in range(4):
        ask(f"{NEAR[4]} {port_of(s)} w500 c")
    time.sleep(0.1)
    s.setblocking(False)
    yield [call(lambda: s.accept()[1][0]) for _ in range(5)]


@scene((1,), (3,), (10,))
def many_wait_at_a_listener(count):
    s = listening_anywhere(20)
    for i in range(count):
        ask(f"{NEAR[4]} {port_of(s)} s{i + 1} w300 c")
    time.sleep(0.1)
    s.setblocking(False)
    got = []
    while wait(s, select.POLLIN, 0):
        c = s.accept()[0]
        wait(c)
        got.append(told(c.recv(20)))
    yield sorted(got), call(s.accept)


@scene()
def accept_by_two_threads():
    s = listening_anywhere()
    got = []
    threads = [threading.Thread(target=lambda: got.append(s.accept()[1][0])) for _ in range(2)]
    for t in threads:
        t.start()
    for _ in range(2):
        ask(f"{NEAR[4]} {port_of(s)} w300 c")
    for t in threads:
        t.join(3)
    yield got


@scene()
def duplicate_of_a_listener_accepts():
    s = listening_anywhere()
    d = s.dup()
    s.close()
    ask(f"{NEAR[4]} {port_of(d)} s5 c")
    yield wait(d), told(all_of(d.accept()[0]))


@scene((socket.SOCK_NONBLOCK,), (0,))
def mode_of_a_listener_is_not_inherited(flags):
    s = listening_anywhere()
    s.setblocking(flags == 0)
    ask(f"{NEAR[4]} {port_of(s)} w300 c")
    wait(s)
    fd = c("accept4", s.fileno(), None, None, 0)
    yield fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK
    os.close(fd)


@scene(("half",), ("whole",), ("reset",))
def ended_before_it_is_accepted(how):
    s = listening_anywhere()
    ask(f"{NEAR[4]} {port_of(s)} s5 " + {"half": "h w300", "whole": "c", "reset": "w20 x"}[how])
    time.sleep(0.15)
    c, peer = s.accept()
    c.setblocking(False)
    yield peer[0], wait(c, select.POLLIN | select.POLLOUT | select.POLLRDHUP, 0), call(c.recv, 10), call(c.recv, 10), call(c.send, b"x")


@scene()
def the_port_is_free_after_the_listener():
    s = listening_anywhere()
    port = port_of(s)
    s.close()
    t = fresh()
    yield call(t.bind, (NEAR[4], port)), call(t.listen, 5)


@scene()
def a_connection_outlives_its_listener():
    s = listening_anywhere()
    ask(f"{NEAR[4]} {port_of(s)} o")
    c = s.accept()[0]
    s.close()
    yield c.send(b"abc"), told(c.recv(3, socket.MSG_WAITALL)), c.getsockname()[0]
