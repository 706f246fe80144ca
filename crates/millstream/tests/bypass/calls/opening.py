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


@scene((4,), (6,))
def connect_to_a_route_that_is_none(v):
    s = fresh(v)
    s.setblocking(False)
    yield call(s.connect, ({4: "10.99.0.1", 6: "fd99::1"}[v], 5001)), call(s.connect, (FAR[v], 5001))


@scene()
def connect_to_the_broadcast_address():
    s = fresh()
    s.setblocking(False)
    yield call(s.connect, ("10.50.0.255", 5001))


@scene(*BOTH)
def connect_to_the_own_address(v):
    s = fresh(v)
    yield call(s.connect, (NEAR[v], 9))
    s = fresh(v)
    s.bind((NEAR[v], 0))
    s.listen(5)
    c = fresh(v)
    yield call(c.connect, s.getsockname()), call(c.send, b"abc"), call(s.accept()[0].recv, 3)


@scene(*BOTH)
def connect_in_time(v):
    s = fresh(v)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 80000))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 10000))
    began = time.monotonic()
    yield call(s.connect, (FAR[v], SILENT)), 0.08 <= time.monotonic() - began < 0.6
    yield call(s.connect, (FAR[v], SILENT)), wait(s, select.POLLOUT, 0)


@scene()
def connect_after_a_refusal():
    s = fresh()
    yield call(s.connect, (FAR[4], 9)), wait(s, select.POLLIN | select.POLLOUT, 0)
    yield call(s.connect, (FAR[4], 9))
    yield call(s.connect, (FAR[4], 5001)), call(s.send, b"s5 c\n"), call(s.recv, 5, socket.MSG_WAITALL)


@scene()
def connect_after_a_refusal_nonblocking():
    s = fresh()
    s.setblocking(False)
    for _ in range(2):
        yield s.connect_ex((FAR[4], 9)), wait(s, select.POLLOUT), s.connect_ex((FAR[4], 9))
    yield s.connect_ex((FAR[4], 5001)), wait(s, select.POLLOUT), s.connect_ex((FAR[4], 5001))


@scene()
def connect_after_a_refusal_keeps_options():
    s = fresh()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    call(s.connect, (FAR[4], 9))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    s.connect((FAR[4], 5001))
    yield s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), s.getblocking()


@scene()
def connect_watched_by_epoll_through_a_refusal():
    s = fresh()
    s.setblocking(False)
    p = select.epoll()
    p.register(s, OUT | IN)
    s.connect_ex((FAR[4], 9))
    yield [e for _, e in p.poll(1)], s.connect_ex((FAR[4], 9)), [e for _, e in p.poll(0)]


@scene((OUT,), (OUT | ET,), (IN | OUT | RDHUP | ET,), (IN | ONE,))
def connect_watched_by_epoll(flags):
    s = fresh()
    s.setblocking(False)
    s.connect_ex((FAR[4], 5001))
    p = select.epoll()
    p.register(s, flags)
    yield [e for _, e in p.poll(0.3)], [e for _, e in p.poll(0)]
    s.send(b"s5 w900\n")
    wait(s)
    yield [e for _, e in p.poll(0)], [e for _, e in p.poll(0)]


@scene()
def connect_by_mapped_addresses():
    s = socket.socket(socket.AF_INET6)
    yield call(s.connect, ("::ffff:10.50.0.2", 5001)), s.getpeername()[:2], s.getsockname()[0]
    s.send(b"s5 c\n")
    yield told(all_of(s)), s.getsockopt(socket.SOL_SOCKET, 39)


@scene()
def connect_by_a_mapped_address_where_none_is_allowed():
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    yield call(s.connect, ("::ffff:10.50.0.2", 5001))


@scene((4,), (6,))
def names_before_and_after(v):
    s = fresh(v)
    yield s.getsockname()[0], s.getsockname()[1] == 0
    s.bind((NEAR[v], 0))
    port = s.getsockname()[1]
    s.connect((FAR[v], 5001))
    yield s.getsockname()[:2] == (NEAR[v], port), len(s.getsockname()), len(s.getpeername())
    s.close()


@scene()
def two_connections_from_one_port():
    s = fresh()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((NEAR[4], 7301))
    yield call(s.connect, (FAR[4], 5001))
    t = fresh()
    t.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    yield call(t.bind, (NEAR[4], 7301)), call(t.connect, (FAR[4], 5001))


@scene()
def send_while_connecting_waits():
    s = fresh()
    s.setblocking(False)
    s.connect_ex((FAR[4], 5001))
    s.setblocking(True)
    yield call(s.send, b"s5 c\n"), told(all_of(s))


@scene()
def read_while_connecting_waits():
    s = fresh()
    s.setblocking(False)
    s.connect_ex((FAR[4], 5001))
    s.setblocking(True)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50000))
    yield call(s.recv, 5), call(s.getpeername) != "ENOTCONN"


@scene((1,), (20,), (100,))
def bytes_behind_the_handshake(n):
    s = fresh()
    s.setblocking(False)
    s.connect_ex((FAR[4], 5001))
    wait(s, select.POLLOUT)
    yield s.send(f"s{n} c\n".encode()), wait(s), call(s.recv, 200)


TCP_FASTOPEN_CONNECT = 30


def opened_fast(v, port=5001, blocking=True):
    """A socket that leaves its SYN to what is written first, and what connect(2) says."""
    s = fresh(v)
    s.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
    s.setblocking(blocking)
    return s, call(s.connect, (FAR[v], port))


def learn_cookie(v):
    s, _ = opened_fast(v)
    s.sendall(b"c\n")
    all_of(s)


@scene(*BOTH)
def a_first_write_opens(v):
    learn_cookie(v)
    s, said = opened_fast(v)
    yield said, s.getsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT), call(s.getpeername), wait(s, select.POLLIN | select.POLLOUT, 0)
    yield call(s.setsockopt, socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 0)
    yield call(s.send, b"f c\n"), s.getpeername()[0], call(s.connect, (FAR[v], 5001)), all_of(s)
    s, said = opened_fast(v)
    long = b"f s2000 e" + b" " * 99999 + b"\n"
    yield said, call(s.send, long), told(s.recv(2001, socket.MSG_WAITALL))


@scene(*BOTH)
def a_first_write_opens_and_does_not_wait(v):
    learn_cookie(v)
    s, said = opened_fast(v, blocking=False)
    set = select.epoll()
    set.register(s, IN | OUT | ET)
    yield said, call(s.recv, 1), call(s.connect, (FAR[v], 5001)), [e for _, e in set.poll(0)], [e for _, e in set.poll(0)]
    yield call(s.send, b"f " + b" " * 2000), [e for _, e in set.poll(1)]
    yield call(s.connect, (FAR[v], 5001)), call(s.connect, (FAR[v], 5001)), call(s.send, b"c\n"), wait(s), told(s.recv(9))
    s, said = opened_fast(v, blocking=False)
    yield said, call(s.send, b""), wait(s, select.POLLOUT), call(s.send, b"f\n"), wait(s), told(s.recv(9))


@scene(*BOTH)
def a_first_write_is_refused(v):
    learn_cookie(v)
    s, said = opened_fast(v, 9)
    yield said, call(s.send, b"abc"), call(s.getpeername), call(s.send, b"abc")
    s, said = opened_fast(v, 9, blocking=False)
    yield said, call(s.send, b"abc"), wait(s), s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), wait(s)


@scene(*BOTH)
def what_is_given_up_before_its_first_write(v):
    learn_cookie(v)
    for how in (0, 1, 2):
        s, said = opened_fast(v)
        yield said, call(s.shutdown, how), wait(s, select.POLLIN | select.POLLOUT, 0), call(s.send, b"x"), call(s.connect, (FAR[v], 5001))
    s, said = opened_fast(v)
    unspecified = ctypes.create_string_buffer(28)
    yield said, c("connect", s.fileno(), unspecified, 28), s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    yield s.getsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT), call(s.connect, (FAR[v], 5001)), call(s.send, b"f c\n"), all_of(s)


@scene(*BOTH)
def what_is_sent_with_the_handshake(v):
    learn_cookie(v)
    s = fresh(v)
    yield call(s.sendto, b"f c\n", socket.MSG_FASTOPEN, (FAR[v], 5001)), s.getsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT), all_of(s)
    s = fresh(v)
    s.setblocking(False)
    yield call(s.sendto, b"f c\n", socket.MSG_FASTOPEN, (FAR[v], 5001)), wait(s), told(s.recv(9))


@scene((-1,), (0,), (1,), (2,))
def a_value_of_fastopen_connect(value):
    s = fresh()
    yield call(s.setsockopt, socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, value), s.getsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT)
    yield call(s.connect, (FAR[4], 5001)), call(s.setsockopt, socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, value)
    yield s.getsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT)
