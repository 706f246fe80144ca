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


SO_INCOMING_CPU = 49


@scene()
def processor_of_the_last_segment():
    s = opened("o")
    yield 0 <= s.getsockopt(socket.SOL_SOCKET, SO_INCOMING_CPU) < os.cpu_count()
    yield call(s.setsockopt, socket.SOL_SOCKET, SO_INCOMING_CPU, 0)
    yield call(s.setsockopt, socket.SOL_SOCKET, SO_INCOMING_CPU, b"x")
    yield len(s.getsockopt(socket.SOL_SOCKET, SO_INCOMING_CPU, 8))


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


LEVELS = {"SO": socket.SOL_SOCKET, "TCP": socket.IPPROTO_TCP, "IP": socket.IPPROTO_IP, "IPV6": socket.IPPROTO_IPV6}
# Names, and values that are set one after the other. Those that Linux rounds by its clock are not here.
VALUES = {
    "SO_REUSEADDR": (1, 0, 7),
    "SO_REUSEPORT": (1, 0),
    "SO_KEEPALIVE": (1, 0, -1),
    "SO_OOBINLINE": (1, 0),
    "SO_BROADCAST": (1, 0),
    "SO_DONTROUTE": (0,),
    "SO_RCVLOWAT": (1, 10, 0),
    "SO_SNDLOWAT": (1,),
    "SO_SNDBUF": (0, 1, 5000, 100000),
    "SO_TYPE": (1,),
    "SO_ERROR": (1,),
    "SO_ACCEPTCONN": (1,),
    "SO_DOMAIN": (2,),
    "SO_PROTOCOL": (6,),
    "TCP_NODELAY": (1, 0, 5, -1),
    "TCP_CORK": (1, 0, 5),
    "TCP_MAXSEG": (1000, 87, 88, 32767, 32768, -1),
    "TCP_KEEPIDLE": (1, 0, 32767, 32768, -1),
    "TCP_KEEPINTVL": (1, 0, 32767, 32768, -1),
    "TCP_KEEPCNT": (1, 0, 127, 128, -1),
    "TCP_SYNCNT": (1, 0, 127, 128, -1),
    "TCP_USER_TIMEOUT": (1, 0, 100000, -1),
    "TCP_NOTSENT_LOWAT": (1, 0, 100000, -1),
    "TCP_QUICKACK": (1,),
    "TCP_DEFER_ACCEPT": (0,),
    "TCP_LINGER2": (10, 0, -1, 1000),
    "TCP_THIN_LINEAR_TIMEOUTS": (1, 0),
    "TCP_FASTOPEN": (0,),
    "TCP_INFO": (1,),
    "IP_TOS": (16, 0xff, 3, 0, 0x128, -1),
    "IPV6_TCLASS": (16,),
}
NUMBERS_OF = {"TCP_THIN_LINEAR_TIMEOUTS": 16, "TCP_WINDOW_CLAMP": 10, "SO_SNDLOWAT": 19, "SO_PROTOCOL": 38, "SO_DOMAIN": 39}
# What the stack's value is, is the stack's: only that there is one is compared.
OWN_DEFAULT = {"SO_SNDBUF", "TCP_MAXSEG", "TCP_WINDOW_CLAMP", "TCP_INFO", "TCP_NOTSENT_LOWAT"}


def option(name):
    level = LEVELS[name.split("_")[0]]
    return level, NUMBERS_OF.get(name) or getattr(socket, name)


def at_work(kind):
    """A connection that was opened or accepted, or a listener that accepts."""
    if kind == "opened":
        return opened("o")
    s = fresh()
    s.bind((NEAR[4], 0))
    s.listen(5)
    wait(s, select.POLLIN, 0)
    if kind == "listener":
        return s
    ask(f"{NEAR[4]} {s.getsockname()[1]} o")
    return s.accept()[0]


@scene(*[(name, kind) for name in VALUES for kind in ("opened", "accepted", "listener")])
def option_is_set(name, kind):
    s = at_work(kind)
    level, number = option(name)
    default = call(s.getsockopt, level, number)
    yield isinstance(default, int) if name in OWN_DEFAULT else default
    for value in VALUES[name]:
        set_to = call(s.setsockopt, level, number, value)
        yield set_to, call(s.getsockopt, level, number) if set_to is None and name not in ("TCP_MAXSEG", "TCP_WINDOW_CLAMP") else "-"
    if kind != "listener":
        yield s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))


@scene(*[(name, kind) for name in ("SO_KEEPALIVE", "SO_LINGER", "SO_RCVTIMEO", "TCP_NODELAY", "TCP_KEEPIDLE", "SO_ERROR", "IP_TOS") for kind in ("opened", "accepted")])
def option_of_other_lengths(name, kind):
    s = at_work(kind)
    level, number = option(name)
    yield [call(s.setsockopt, level, number, b"\1\0\0\0" + bytes(n - 4) if n > 3 else bytes(n)) for n in (1, 3, 4, 7, 8, 15, 16, 20)]
    yield [call(s.getsockopt, level, number, n) for n in (1, 2, 4, 8, 16, 30)]


@scene(("opened",), ("accepted",), ("listener",))
def option_by_bad_pointers(kind):
    s = at_work(kind)
    length = ctypes.c_int(4)
    value = ctypes.c_int(0)
    level, number = option("TCP_NODELAY")
    yield c("setsockopt", s.fileno(), level, number, None, 4), c("setsockopt", s.fileno(), level, number, None, 0)
    yield c("setsockopt", s.fileno(), level, number, ctypes.byref(value), -1)
    yield c("getsockopt", s.fileno(), level, number, None, ctypes.byref(length)), length.value
    yield c("getsockopt", s.fileno(), level, number, ctypes.byref(value), None)
    length.value = -1
    yield c("getsockopt", s.fileno(), level, number, ctypes.byref(value), ctypes.byref(length)), length.value
    length.value = 0
    yield c("getsockopt", s.fileno(), level, number, ctypes.byref(value), ctypes.byref(length)), length.value


@scene(*[(on, seconds) for on in (0, 1, 5) for seconds in (0, 1, 100)])
def linger_is_set(on, seconds):
    s = opened("o")
    yield call(s.setsockopt, socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", on, seconds))
    flag, time_left = struct.unpack("ii", s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
    yield flag, time_left if flag else "-"


@scene(*[(name, seconds, micros) for name in ("SO_RCVTIMEO", "SO_SNDTIMEO") for seconds, micros in ((0, 0), (1, 0), (2, 500000), (0, 1000000), (0, -1), (-1, 0))])
def time_out_is_set(name, seconds, micros):
    s = opened("o")
    level, number = option(name)
    yield call(s.setsockopt, level, number, struct.pack("ll", seconds, micros))
    yield struct.unpack("ll", s.getsockopt(level, number, 16))


@scene(*[(name, value) for name, value in (("TCP_NODELAY", 1), ("SO_KEEPALIVE", 1), ("TCP_KEEPIDLE", 33), ("TCP_KEEPINTVL", 34), ("TCP_KEEPCNT", 5),
    ("TCP_USER_TIMEOUT", 5000), ("SO_SNDBUF", 60000), ("SO_RCVLOWAT", 7), ("TCP_SYNCNT", 3), ("TCP_CORK", 1), ("SO_REUSEADDR", 1), ("SO_REUSEPORT", 1),
    ("SO_OOBINLINE", 1), ("TCP_LINGER2", 20), ("TCP_NOTSENT_LOWAT", 5000), ("TCP_MAXSEG", 900), ("IP_TOS", 0x28))])
def option_is_set_before_connecting(name, value):
    s = fresh()
    level, number = option(name)
    s.setsockopt(level, number, value)
    before = s.getsockopt(level, number)
    s.connect((FAR[4], 5001))
    s.sendall(b"o\n")
    yield before, s.getsockopt(level, number)


@scene(*[(name, value, when) for name, value in (("TCP_NODELAY", 1), ("SO_KEEPALIVE", 1), ("TCP_KEEPIDLE", 33), ("TCP_KEEPCNT", 5), ("TCP_USER_TIMEOUT", 5000),
    ("SO_SNDBUF", 60000), ("SO_RCVLOWAT", 7), ("TCP_CORK", 1), ("SO_REUSEADDR", 1), ("SO_OOBINLINE", 1), ("IP_TOS", 0x28)) for when in ("before", "after")])
def option_goes_from_listener_to_connection(name, value, when):
    s = fresh()
    level, number = option(name)
    s.bind((NEAR[4], 0))
    if when == "before":
        s.setsockopt(level, number, value)
    s.listen(5)
    wait(s, select.POLLIN, 0)
    if when == "after":
        s.setsockopt(level, number, value)
    ask(f"{NEAR[4]} {s.getsockname()[1]} o")
    yield s.accept()[0].getsockopt(level, number), s.getsockopt(level, number)


@scene(("opened",), ("accepted",))
def congestion_control_has_a_name(kind):
    s = at_work(kind)
    name = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    yield len(name)
    yield call(s.setsockopt, socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"none-such")
    yield call(s.setsockopt, socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.rstrip(b"\0"))


@scene(*[(name, when) for name in ("reno", "bbr") for when in ("before", "after")])
def congestion_control_is_chosen(name, when):
    s = fresh() if when == "before" else opened("s100000 c")
    yield call(s.setsockopt, socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    if when == "before":
        s.connect((FAR[4], 5001))
        s.sendall(b"s100000 c\n")
    yield told(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()), told(all_of(s))


@scene()
def nagle_waits_for_the_acknowledgement():
    s = opened("o")
    yield s.send(b"a"), s.send(b"b"), s.send(b"c"), told(s.recv(3, socket.MSG_WAITALL))


@scene()
def keepalive_and_idle_time_stay_apart():
    s = opened("o")
    level, idle = option("TCP_KEEPIDLE")
    s.setsockopt(level, idle, 50)
    yield s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), s.getsockopt(level, idle)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    yield s.getsockopt(level, idle)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0)
    yield s.getsockopt(level, idle)


@scene()
def classes_of_a_connection_of_ipv6():
    s = opened("o", 6)
    tclass, tos = option("IPV6_TCLASS"), option("IP_TOS")
    for value in (0x28, 0xff, 3, 256, -1, -2):
        yield call(s.setsockopt, *tclass, value), call(s.getsockopt, *tclass), call(s.getsockopt, *tos)
    yield call(s.setsockopt, *tos, 0x20), call(s.getsockopt, *tclass), call(s.getsockopt, *tos)
    yield [call(s.setsockopt, *tclass, b"\x20" + bytes(n)) for n in (0, 2, 3, 7)], [call(s.getsockopt, *tclass, n) for n in (1, 2, 4, 8)]
    yield s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))
    s = fresh(6)
    s.setsockopt(*tclass, 0x48)
    s.connect((FAR[6], 5001))
    yield s.getsockopt(*tclass), s.getsockopt(*tos)
