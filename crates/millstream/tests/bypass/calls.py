"""Small scenes of socket calls against far.py, one line of results each: the kernel and the stack have to say the same.

A result is what the call returned, or the name of its error; data are told by length and sum.
"""
import errno
import os
import select
import signal
import socket
import struct
import sys
import threading
import time

NEAR = {4: "10.50.0.1", 6: "fd50::1"}
FAR = {4: "10.50.0.2", 6: "fd50::2"}
SCENES = []


def scene(*variants):
    """Registers a scene, once for each tuple of arguments."""

    def register(run):
        for arguments in variants or [()]:
            name = run.__name__ + "".join(f"-{a}" for a in arguments)
            SCENES.append((name, run, arguments))
        return run

    return register


BOTH = [(4,), (6,)]


def told(value):
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)}b{sum(value) % 1000}"
    return value


def call(function, *arguments):
    try:
        return told(function(*arguments))
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def family(version):
    return socket.AF_INET if version == 4 else socket.AF_INET6


def fresh(version=4):
    return socket.socket(family(version), socket.SOCK_STREAM)


def opened(words, version=4, blocking=True):
    """A connection whose far end does what the words say."""
    s = fresh(version)
    s.connect((FAR[version], 5001))
    s.sendall(words.encode() + b"\n")
    s.setblocking(blocking)
    return s


def listening(port, version=4, backlog=10):
    s = fresh(version)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((NEAR[version], port))
    s.listen(backlog)
    return s


def ask(words, version=4):
    """Has the far end connect to this one."""
    opened(f"k {words}", version).close()


def wait(s, events=select.POLLIN, timeout=3000):
    p = select.poll()
    p.register(s, events)
    return [e for _, e in p.poll(timeout)]


def all_of(s):
    data = b""
    while part := s.recv(65536):
        data += part
    return data


# Opening.


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


# Reading.


@scene(*[(n, v) for n in (1, 100, 1448, 5000, 100000) for v in (4, 6)])
def read_to_the_end(n, v):
    s = opened(f"s{n} c", v)
    yield told(all_of(s)), call(s.recv, 10), call(s.recv, 10)


@scene(*[(f,) for f in (0, socket.MSG_PEEK, socket.MSG_DONTWAIT, socket.MSG_WAITALL, socket.MSG_PEEK | socket.MSG_DONTWAIT)])
def read_with_flags(flags):
    s = opened("s100 w50 s100 c")
    wait(s)
    yield call(s.recv, 60, flags), call(s.recv, 60, flags)
    yield told(all_of(s))


@scene((150,), (200,), (300,))
def wait_for_all(n):
    s = opened("s100 w50 s100 c")
    yield call(s.recv, n, socket.MSG_WAITALL), call(s.recv, n, socket.MSG_WAITALL)


@scene()
def read_nothing_nonblocking():
    s = opened("w200 s5 c", blocking=False)
    yield call(s.recv, 10), wait(s), call(s.recv, 10)


@scene((1,), (50,))
def read_times_out(ms):
    s = opened("w400 s5 c")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, ms * 1000))
    began = time.monotonic()
    yield call(s.recv, 10)
    yield ms / 1000 <= time.monotonic() - began < 0.3
    yield struct.unpack("ll", s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16))[1] >= ms * 1000


@scene()
def read_after_reset():
    s = opened("s5 w20 x")
    wait(s, select.POLLHUP)
    yield call(s.recv, 3), call(s.recv, 10), call(s.recv, 10)


@scene()
def read_zero_bytes():
    s = opened("s5 w100 c")
    wait(s)
    yield call(s.recv, 0), call(s.recv, 10)


@scene(((1, 2, 3),), ((100, 1, 50),), ((0, 5, 0),))
def read_into_pieces(sizes):
    s = opened("s200 w50 c")
    wait(s)
    pieces = [bytearray(n) for n in sizes]
    yield os.readv(s.fileno(), pieces), [told(p) for p in pieces]


@scene()
def read_messages():
    s = opened("s200 w50 c")
    wait(s)
    a, b = bytearray(30), bytearray(40)
    count, ancillary, flags, _ = s.recvmsg_into([a, b])
    yield count, told(a), told(b), ancillary, flags
    data, address = s.recvfrom(10)
    yield told(data), address


@scene()
def unread_count():
    import fcntl
    import termios

    s = opened("s123 w100 c")
    wait(s)
    yield struct.unpack("i", fcntl.ioctl(s, termios.FIONREAD, b"    "))[0]
    s.recv(23)
    yield struct.unpack("i", fcntl.ioctl(s, termios.FIONREAD, b"    "))[0]


@scene((10,), (300,))
def low_water(n):
    s = opened("s100 w100 s250 w100 c")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, n)
    time.sleep(0.05)
    yield wait(s, select.POLLIN, 0), wait(s, select.POLLIN, 1000)


# Writing.


@scene(*[(n, v) for n in (1, 1448, 30000, 1000000) for v in (4, 6)])
def echo(n, v):
    s = opened("o", v)
    said = bytes(i % 256 for i in range(n))
    threading.Thread(target=lambda: (s.sendall(said), s.shutdown(1))).start()
    yield all_of(s) == said


@scene()
def write_pieces():
    s = opened("o")
    yield os.writev(s.fileno(), [b"ab", b"", b"cde"]), s.recv(5, socket.MSG_WAITALL)
    yield s.sendmsg([b"12", b"345"]), s.recv(5, socket.MSG_WAITALL)


@scene()
def write_to_a_connected_address():
    s = opened("o")
    yield call(s.sendto, b"x", (FAR[4], 5001))


@scene()
def write_with_more():
    s = opened("o")
    yield s.send(b"ab", socket.MSG_MORE), s.send(b"cd"), s.recv(4, socket.MSG_WAITALL)


@scene()
def write_until_full_and_empty():
    s = opened("w2500 e", blocking=False)
    total = 0
    # Until the far end has taken what it has room for, too.
    added = 1
    while added:
        added = 0
        try:
            while True:
                added += s.send(b"x" * 100000)
        except BlockingIOError:
            pass
        total += added
        time.sleep(0.15)
    yield total > 100000, wait(s, select.POLLOUT, 0), call(s.send, b"x")
    yield wait(s, select.POLLOUT, 5000)


@scene()
def write_times_out():
    s = opened("w2000")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 50000))
    result = None
    for _ in range(1000):
        result = call(s.send, b"x" * 100000)
        if isinstance(result, str):
            break
    yield result


@scene()
def write_after_the_far_end_closed():
    s = opened("c")
    wait(s, select.POLLRDHUP)
    yield call(s.send, b"x")
    wait(s, select.POLLHUP)
    yield call(s.send, b"x"), call(s.send, b"x")
    yield call(s.recv, 1)


@scene()
def write_after_shutdown():
    s = opened("o")
    yield call(s.shutdown, socket.SHUT_WR), call(s.send, b"x"), call(s.shutdown, socket.SHUT_WR)


@scene()
def sigpipe_is_raised():
    s = opened("o")
    raised = []
    before = signal.signal(signal.SIGPIPE, lambda *_: raised.append(1))
    s.shutdown(socket.SHUT_WR)
    yield call(os.write, s.fileno(), b"x"), len(raised)
    yield call(s.send, b"x", socket.MSG_NOSIGNAL), len(raised)
    signal.signal(signal.SIGPIPE, before)


@scene((0, 100), (50, 100), (0, 1000000), (900000, 200000))
def send_files(offset, count):
    path = f"/tmp/calls-{os.getpid()}"
    with open(path, "wb") as f:
        f.write(bytes(i % 253 for i in range(1000000)))
    with open(path, "rb") as f:
        os.unlink(path)
        s = opened("o")
        sent = 0
        got = []
        reader = threading.Thread(target=lambda: got.append(all_of(s)))
        reader.start()
        while sent < count:
            n = os.sendfile(s.fileno(), f.fileno(), offset + sent, count - sent)
            if n == 0:
                break
            sent += n
        s.shutdown(1)
        reader.join()
        yield sent, told(got[0]), f.tell()


# Ends.


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


@scene()
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


@scene()
def closed_descriptor():
    s = opened("o")
    fd = s.fileno()
    s.close()
    yield call(os.read, fd, 1), call(os.write, fd, b"x"), call(os.close, fd)


# Listeners.


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


# Options.

NUMBERS = [
    (socket.SOL_SOCKET, socket.SO_TYPE),
    (socket.SOL_SOCKET, socket.SO_PROTOCOL),
    (socket.SOL_SOCKET, socket.SO_DOMAIN),
    (socket.SOL_SOCKET, socket.SO_ERROR),
    (socket.SOL_SOCKET, socket.SO_ACCEPTCONN),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
    (socket.SOL_SOCKET, socket.SO_RCVLOWAT),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY),
    (socket.IPPROTO_TCP, socket.TCP_CORK),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
    (socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT),
    (socket.IPPROTO_TCP, socket.TCP_SYNCNT),
    (socket.IPPROTO_TCP, 9999),
    (9999, 1),
]


@scene(*NUMBERS)
def default_of(level, name):
    s = opened("o")
    yield call(s.getsockopt, level, name)


SETTABLE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, (1, 0)),
    (socket.SOL_SOCKET, socket.SO_RCVLOWAT, (10, 0)),
    (socket.SOL_SOCKET, socket.SO_SNDBUF, (10000, 100000)),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, (1, 0)),
    (socket.IPPROTO_TCP, socket.TCP_CORK, (1, 0)),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, (10, 0, 32767, 32768)),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, (10, 0, 32768)),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, (5, 0, 127, 128)),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, (1000, 0, -1)),
    (socket.IPPROTO_TCP, socket.TCP_SYNCNT, (3, 0, 127, 128)),
    (socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, (16384,)),
    (socket.IPPROTO_TCP, 9999, (1,)),
]


@scene(*[(level, name, value) for level, name, values in SETTABLE for value in values])
def set_option(level, name, value):
    s = opened("o")
    yield call(s.setsockopt, level, name, value), call(s.getsockopt, level, name)
    yield s.send(b"x")


@scene()
def option_too_short():
    s = opened("o")
    yield call(s.setsockopt, socket.IPPROTO_TCP, socket.TCP_NODELAY, b"\1")
    yield call(s.getsockopt, socket.IPPROTO_TCP, socket.TCP_NODELAY, 2)


@scene()
def cork_holds_and_lets_go():
    s = opened("o")
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    s.send(b"abc")
    yield wait(s, select.POLLIN, 100)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    yield wait(s, select.POLLIN, 1000), told(s.recv(10))


@scene()
def info():
    s = opened("o")
    data = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    yield len(data), data[0]


@scene((os.O_NONBLOCK,), (0,))
def status_flags(flags):
    import fcntl

    s = opened("w100 c")
    yield fcntl.fcntl(s, fcntl.F_SETFL, flags)
    yield fcntl.fcntl(s, fcntl.F_GETFL) & (os.O_NONBLOCK | os.O_ACCMODE)
    yield call(s.recv, 1)


@scene()
def descriptor_flags_and_kind():
    import fcntl
    import stat

    s = opened("o")
    yield fcntl.fcntl(s, fcntl.F_GETFD), stat.S_ISSOCK(os.fstat(s.fileno()).st_mode)
    yield call(os.lseek, s.fileno(), 0, 0), os.isatty(s.fileno())
    d = fcntl.fcntl(s, fcntl.F_DUPFD_CLOEXEC, 50)
    yield d, fcntl.fcntl(d, fcntl.F_GETFD), os.write(d, b"x")
    os.close(d)


# Waiting.

IN, OUT, ET, ONE, RDHUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLET, select.EPOLLONESHOT, select.EPOLLRDHUP


def events(p, timeout=0.5):
    return [e for _, e in p.poll(timeout)]


@scene(*[(flags,) for flags in (IN, IN | ET, IN | ONE, IN | OUT, IN | OUT | ET, IN | RDHUP, IN | RDHUP | ET, OUT, OUT | ET, RDHUP, 0)])
def epoll_of_a_life(flags):
    s = opened("w100 s5 w100 s5 w100 c", blocking=False)
    p = select.epoll()
    p.register(s, flags)
    quiet = flags & OUT and not flags & (ET | ONE)
    if quiet:
        time.sleep(0.45)
    for _ in range(5):
        yield events(p, 0 if quiet else 0.25)
    yield call(s.recv, 3), events(p, 0), call(s.recv, 30), events(p, 0)


@scene((IN,), (IN | ET,), (IN | ONE,))
def epoll_modified(flags):
    s = opened("s5 w100 c", blocking=False)
    p = select.epoll()
    p.register(s, flags)
    wait(s)
    yield events(p), events(p, 0)
    p.modify(s, flags)
    yield events(p, 0)
    p.modify(s, 0)
    yield events(p, 0)
    p.modify(s, flags)
    p.unregister(s)
    yield events(p, 0), call(p.modify, s, flags), call(p.unregister, s)


@scene()
def epoll_registered_twice():
    s = opened("o")
    p = select.epoll()
    p.register(s, IN)
    yield call(p.register, s, IN)
    d = s.dup()
    p.register(d, IN)
    s.send(b"x")
    wait(s)
    yield len(p.poll(0.2))
    s.close()
    yield len(p.poll(0.2)) >= 1


@scene((IN,), (IN | ET,), (IN | select.EPOLLEXCLUSIVE,))
def epoll_of_a_listener(flags):
    s = listening(7110)
    s.setblocking(False)
    p = select.epoll()
    p.register(s, flags)
    yield events(p, 0)
    for _ in range(2):
        ask(f"{NEAR[4]} 7110 w300 c")
        yield events(p)
        c = s.accept()[0]
        yield events(p, 0)
        c.close()


@scene()
def epoll_mixed_with_a_pipe():
    s = opened("w50 s5 w50 c", blocking=False)
    r, w = os.pipe()
    p = select.epoll()
    p.register(s, IN)
    p.register(r, IN)
    yield len(events(p, 0))
    os.write(w, b"x")
    yield [fd == r for fd, _ in p.poll(0)]
    os.read(r, 1)
    yield [fd == s.fileno() for fd, _ in p.poll(1)]
    os.write(w, b"x")
    yield len(events(p, 0))


@scene()
def epoll_set_with_a_duplicate():
    s = opened("s1 w300 c", blocking=False)
    p = select.epoll()
    p.register(s, IN)
    d = select.epoll.fromfd(os.dup(p.fileno()))
    p.close()
    yield events(d), call(d.register, s, IN)


@scene()
def a_handler_writes_to_the_connection_that_waits():
    s = opened("o")
    before = signal.signal(signal.SIGALRM, lambda *_: s.send(b"abc"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    yield told(s.recv(3, socket.MSG_WAITALL))
    signal.signal(signal.SIGALRM, before)


@scene()
def descriptors_of_threads_that_waited():
    s = opened("w200 c", blocking=False)
    count = len(os.listdir("/proc/self/fd"))
    threads = [threading.Thread(target=lambda: wait(s, select.POLLIN, 50)) for _ in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    yield len(os.listdir("/proc/self/fd")) - count


@scene()
def epoll_count_is_bounded():
    socks = [opened("s1 w200 c", blocking=False) for _ in range(5)]
    for s in socks:
        wait(s)
    p = select.epoll()
    for s in socks:
        p.register(s, IN)
    yield len(p.poll(0.2, 2)), len(p.poll(0.2, 3)), len(p.poll(0.2, 100))


@scene()
def epoll_times_out():
    s = opened("w500 c")
    p = select.epoll()
    p.register(s, IN)
    began = time.monotonic()
    yield events(p, 0.1), 0.09 < time.monotonic() - began < 0.3


@scene()
def epoll_in_another_thread():
    s = opened("w100 c", blocking=False)
    p = select.epoll()
    t = opened("w50 s5 w100 c", blocking=False)
    found = []
    thread = threading.Thread(target=lambda: found.extend(p.poll(3)))
    thread.start()
    time.sleep(0.02)
    p.register(t, IN)
    thread.join()
    yield [(fd == t.fileno(), e) for fd, e in found]


@scene((select.POLLIN,), (select.POLLOUT,), (select.POLLIN | select.POLLOUT,), (select.POLLRDHUP,), (select.POLLPRI,), (0,))
def poll_of_a_life(wanted):
    s = opened("w50 s5 w50 c")
    yield wait(s, wanted, 0)
    time.sleep(0.07)
    yield wait(s, wanted, 0)
    time.sleep(0.1)
    yield wait(s, wanted, 0)
    s.shutdown(socket.SHUT_WR)
    yield wait(s, wanted, 0)


@scene()
def poll_of_bad_and_negative():
    p = select.poll()
    s = opened("w50 c")
    p.register(s, select.POLLIN)
    p.register(98, select.POLLIN)
    yield [(fd == 98, e) for fd, e in p.poll(0)]


@scene()
def select_of_a_life():
    s = opened("w50 s5 w50 c")
    yield [len(x) for x in select.select([s], [s], [s], 0)]
    yield [len(x) for x in select.select([s], [], [], 1)]
    s.recv(5)
    yield [len(x) for x in select.select([s], [], [], 0)], [len(x) for x in select.select([s], [], [], 1)]
    yield [len(x) for x in select.select([s], [], [s], 0)]


@scene()
def select_times_out_beside_a_pipe():
    s = opened("w500 c")
    r, w = os.pipe()
    yield [len(x) for x in select.select([s, r], [], [], 0.05)]
    os.write(w, b"x")
    yield [x == r for x in select.select([s, r], [], [], 1)[0]]


# Signals, processes, threads.


class Alarm(Exception):
    pass


@scene(("recv",), ("poll",), ("epoll",), ("select",), ("accept",))
def a_signal_ends_a_wait(how):
    def handler(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, handler)
    s = listening(7111) if how == "accept" else opened("w900 c")
    waits = {
        "recv": lambda: s.recv(1),
        "poll": lambda: wait(s, select.POLLIN, 700),
        "epoll": lambda: select_epoll(s),
        "select": lambda: select.select([s], [], [], 0.7),
        "accept": lambda: s.accept(),
    }
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    began = time.monotonic()
    try:
        waits[how]()
        yield "not interrupted"
    except Alarm:
        yield "interrupted", time.monotonic() - began < 0.5
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def select_epoll(s):
    p = select.epoll()
    p.register(s, IN)
    return p.poll(0.7)


@scene()
def a_signal_handler_that_returns_goes_on():
    count = []
    before = signal.signal(signal.SIGALRM, lambda *_: count.append(1))
    s = opened("w200 s5 c")
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    yield told(s.recv(10)), len(count)
    signal.signal(signal.SIGALRM, before)


@scene()
def threads_share_a_connection():
    s = opened("o")
    n = 200
    got = []

    def read():
        data = b""
        while len(data) < n * 100:
            data += s.recv(1000)
        got.append(len(data))

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=lambda: [s.sendall(b"x" * 100) for _ in range(n // 4)]) for _ in range(4)]
    for t in [reader, *writers]:
        t.start()
    for t in [reader, *writers]:
        t.join()
    yield got


@scene()
def a_child_leaves_the_parents_connection_alone():
    s = opened("o")
    if os.fork() == 0:
        s.close()
        os._exit(0)
    os.wait()
    yield s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))


@scene()
def many_connections():
    socks = [opened("s3 w300 c", blocking=False) for _ in range(100)]
    for s in socks:
        wait(s)
    yield {told(s.recv(10)) for s in socks}
    for s in socks:
        s.close()


def overdue(*_):
    raise Alarm("the scene takes too long")


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, run, arguments in SCENES:
        if only not in name:
            continue
        results = []
        before = signal.signal(signal.SIGUSR1, overdue)
        timer = threading.Timer(6, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1))
        timer.start()
        try:
            for result in run(*arguments):
                results.append(result)
        except Exception as error:
            results.append(f"{type(error).__name__} {error}")
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)
        print(name, *results, flush=True)


main()
