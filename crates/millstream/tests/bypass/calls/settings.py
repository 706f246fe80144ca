"""Options."""
from scene import *


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
    s = opened("w100 c")
    yield fcntl.fcntl(s, fcntl.F_SETFL, flags)
    yield fcntl.fcntl(s, fcntl.F_GETFL) & (os.O_NONBLOCK | os.O_ACCMODE)
    yield call(s.recv, 1)


@scene(alone=True)
def descriptor_flags_and_kind():
    import fcntl
    import stat

    s = opened("o")
    yield fcntl.fcntl(s, fcntl.F_GETFD), stat.S_ISSOCK(os.fstat(s.fileno()).st_mode)
    yield call(os.lseek, s.fileno(), 0, 0), os.isatty(s.fileno())
    d = fcntl.fcntl(s, fcntl.F_DUPFD_CLOEXEC, 50)
    yield d, fcntl.fcntl(d, fcntl.F_GETFD), os.write(d, b"x")
    os.close(d)
