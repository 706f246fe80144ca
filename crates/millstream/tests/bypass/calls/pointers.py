"""Calls of the C library with null pointers, lengths of all kinds, and many pieces.

Null only: what else is no address ends the program on the stack (COMPLIANCE.md).
"""
from scene import *


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint), ("iov", ctypes.POINTER(Piece)), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int)]


class Several(ctypes.Structure):
    _fields_ = [("header", Message), ("len", ctypes.c_uint)]


class Time(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanos", ctypes.c_long)]


def pieces(*buffers):
    return (Piece * max(1, len(buffers)))(*[Piece(ctypes.addressof(b), len(b)) if b is not None else Piece(None, 5) for b in buffers])


def buffer(count=100, content=b""):
    return ctypes.create_string_buffer(content, count) if content else ctypes.create_string_buffer(count)


def several(count, size=10, content=b""):
    """So many messages of a piece each, and what keeps them alive."""
    buffers = [buffer(size, content) for _ in range(count)]
    vectors = [pieces(b) for b in buffers]
    messages = (Several * count)()
    for message, vector in zip(messages, vectors):
        message.header.iov, message.header.iovlen = vector, 1
    return messages, (buffers, vectors)


ADDRESS = ctypes.create_string_buffer(128)


@scene(*[(name, length) for name in ("getsockname", "getpeername") for length in (0, 1, 2, 8, 15, 16, 28, 128, -1)])
def address_is_cut(name, length):
    s = opened("o")
    into, count = ctypes.create_string_buffer(b"\xee" * 127), ctypes.c_int(length)
    yield c(name, s.fileno(), into, ctypes.byref(count)), count.value
    # What is written may be what was there: a port is any number.
    other = ctypes.create_string_buffer(b"\x11" * 127)
    c(name, s.fileno(), other, ctypes.byref(ctypes.c_int(length)))
    written = [i for i in range(4) if (into.raw[i], other.raw[i]) != (0xEE, 0x11)]
    yield written, into.raw[16:].count(b"\xee") if length <= 16 else "-"


@scene(*[(length,) for length in (0, 2, 16, 28, 128, -1)])
def address_of_ipv6_is_cut(length):
    s = opened("o", 6)
    into, count = ctypes.create_string_buffer(b"\xee" * 127), ctypes.c_int(length)
    yield c("getpeername", s.fileno(), into, ctypes.byref(count)), count.value, into.raw.count(b"\xee") if length <= 16 else "-"


@scene(("getsockname",), ("getpeername",))
def address_without_room(name):
    s = opened("o")
    count = ctypes.c_int(16)
    yield c(name, s.fileno(), None, ctypes.byref(count)), c(name, s.fileno(), ADDRESS, None), c(name, s.fileno(), None, None)


@scene(*[(length,) for length in (0, 2, 8, 16, 100, -1, None)])
def accepted_address_is_cut(length):
    s = fresh()
    s.bind((NEAR[4], 0))
    s.listen(5)
    s.settimeout(2)
    wait(s, select.POLLIN, 0)
    ask(f"{NEAR[4]} {s.getsockname()[1]} o")
    wait(s)
    into, count = ctypes.create_string_buffer(b"\xee" * 127), ctypes.c_int(length or 0)
    result = c("accept", s.fileno(), into, ctypes.byref(count) if length is not None else None)
    yield result if isinstance(result, str) else "accepted", count.value, into.raw.count(b"\xee") if (length or 0) < 16 else "-"
    if not isinstance(result, str):
        os.close(result)


@scene()
def accept4_with_flags():
    s = fresh()
    s.bind((NEAR[4], 0))
    s.listen(5)
    wait(s, select.POLLIN, 0)
    for flags in (0, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC):
        ask(f"{NEAR[4]} {s.getsockname()[1]} w100 c")
        wait(s)
        fd = c("accept4", s.fileno(), None, None, flags)
        yield fcntl.fcntl(fd, fcntl.F_GETFD), fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK
        os.close(fd)
    yield c("accept4", s.fileno(), None, None, 1 << 20)


READS = {
    "read": lambda s, into, n: c("read", s.fileno(), into, ctypes.c_size_t(n)),
    "recv": lambda s, into, n: c("recv", s.fileno(), into, ctypes.c_size_t(n), 0),
    "recvfrom": lambda s, into, n: c("recvfrom", s.fileno(), into, ctypes.c_size_t(n), 0, None, None),
}


@scene(*[(name,) for name in READS])
def read_to_null(name):
    s = opened("s10 w900 c", blocking=False)
    wait(s)
    yield READS[name](s, None, 5), READS[name](s, None, 0), READS[name](s, buffer(), 5)


@scene(("write",), ("send",), ("sendto",))
def write_from_null(name):
    s = opened("o", blocking=False)
    rest = {"write": (), "send": (0,), "sendto": (0, None, 0)}[name]
    for count in (5, 0):
        yield c(name, s.fileno(), None, ctypes.c_size_t(count), *rest)
    s.shutdown(socket.SHUT_WR)
    yield c("send", s.fileno(), None, 5, socket.MSG_NOSIGNAL)


@scene()
def recvfrom_tells_no_address():
    s = opened("s10 w900 c")
    wait(s)
    into, count = ctypes.create_string_buffer(b"\xee" * 31), ctypes.c_int(16)
    yield c("recvfrom", s.fileno(), buffer(), 5, 0, into, ctypes.byref(count)), count.value, into.raw.count(b"\xee")


@scene(("readv", -1), ("readv", 0), ("readv", 1025), ("readv", 1024), ("writev", -1), ("writev", 0), ("writev", 1025), ("writev", 1024))
def number_of_pieces(name, count):
    s = opened("s2000 w900 c", blocking=False)
    wait(s)
    buffers = [buffer(1, b"x") for _ in range(max(count, 0))]
    yield c(name, s.fileno(), pieces(*buffers), count)


@scene(("readv",), ("writev",))
def pieces_that_are_null(name):
    s = opened("s20 w900 c", blocking=False)
    wait(s)
    yield c(name, s.fileno(), None, 1), c(name, s.fileno(), None, 0)
    yield c(name, s.fileno(), pieces(None), 1), c(name, s.fileno(), pieces(buffer(3), None), 2)
    huge = (Piece * 2)(Piece(ctypes.addressof(ADDRESS), 1 << 63), Piece(None, 0))
    yield c(name, s.fileno(), huge, 1)


@scene(("recvmsg",), ("sendmsg",))
def message_of_odd_pieces(name):
    s = opened("s2000 w900 c", blocking=False)
    wait(s)
    yield c(name, s.fileno(), None, 0)
    buffers = [buffer(1, b"x") for _ in range(1025)]
    vector = pieces(*buffers)
    for count in (0, 1, 1024, 1025):
        yield c(name, s.fileno(), ctypes.byref(Message(None, 0, vector, count, None, 0, 0)), 0)
    yield c(name, s.fileno(), ctypes.byref(Message(None, 0, None, 1, None, 0, 0)), 0)


@scene()
def recvmsg_says_what_it_filled():
    s = opened("s20 w900 c")
    wait(s)
    name = buffer(50)
    message = Message(ctypes.addressof(name), 50, pieces(buffer(7)), 1, ctypes.addressof(ADDRESS), 100, 77)
    yield c("recvmsg", s.fileno(), ctypes.byref(message), 0), message.namelen, message.controllen, message.flags
    s.setblocking(False)
    s.recv(100)
    message = Message(ctypes.addressof(name), 50, pieces(buffer(7)), 1, ctypes.addressof(ADDRESS), 100, 77)
    yield c("recvmsg", s.fileno(), ctypes.byref(message), 0), message.namelen, message.controllen, message.flags


@scene(*[(count, flags) for count in (0, 1, 3, 12) for flags in (0, socket.MSG_DONTWAIT, 0x10000)])
def several_messages_are_read(count, flags):
    s = opened("s25 w100 s3 c")
    wait(s)
    messages, _alive = several(max(count, 1))
    yield c("recvmmsg", s.fileno(), messages, count, flags, None), [m.len for m in messages[:count]]


@scene(*[(nanos,) for nanos in (-1, 0, 1, 50000000, 1000000000)])
def several_messages_within_a_time(nanos):
    s = opened("s25 w100 s30 w900 c")
    wait(s)
    messages, _alive = several(12)
    limit = Time(0, nanos)
    yield c("recvmmsg", s.fileno(), messages, 12, 0x10000 if nanos == 0 else 0, ctypes.byref(limit)) if nanos not in (50000000,) else "-"
    yield [m.len for m in messages]


@scene()
def several_messages_then_an_error():
    s = opened("s25 w50 x", blocking=False)
    wait(s, select.POLLHUP)
    messages, _alive = several(12)
    for _ in range(3):
        yield c("recvmmsg", s.fileno(), messages, 12, 0, None)


@scene(*[(count,) for count in (0, 1, 5)])
def several_messages_are_sent(count):
    s = opened("o")
    messages, _alive = several(max(count, 1), 10, b"y" * 10)
    yield c("sendmmsg", s.fileno(), messages, count, 0), [m.len for m in messages]
    yield told(s.recv(10 * count, socket.MSG_WAITALL))
    s.shutdown(socket.SHUT_WR)
    yield c("sendmmsg", s.fileno(), messages, count, socket.MSG_NOSIGNAL)


@scene(("recvmmsg",), ("sendmmsg",))
def several_messages_at_null(name):
    s = opened("s5 w900", blocking=False)
    wait(s)
    yield c(name, s.fileno(), None, 2, 0, *([None] if name == "recvmmsg" else []))


@scene(("FIONREAD",), ("TIOCOUTQ",), ("FIONBIO",))
def request_at_null(name):
    s = opened("o")
    request = {"FIONREAD": termios.FIONREAD, "TIOCOUTQ": termios.TIOCOUTQ, "FIONBIO": termios.FIONBIO}[name]
    yield c("ioctl", s.fileno(), ctypes.c_ulong(request), None)


@scene(("connect", 4), ("connect", 6))
def connect_to_short_addresses(_name, v):
    whole = {4: struct.pack("=HH4s8x", socket.AF_INET, socket.htons(5001), socket.inet_aton(FAR[4])),
             6: struct.pack("=HHI16sI", socket.AF_INET6, socket.htons(5001), 0, socket.inet_pton(socket.AF_INET6, FAR[6]), 0)}[v]
    for count in (0, 1, 2, 8, 15, 16, 24, 27, 28):
        s = fresh(v)
        yield c("connect", s.fileno(), ctypes.create_string_buffer(whole + bytes(100)), count)
    s = fresh(v)
    yield c("connect", s.fileno(), None, len(whole)), c("connect", s.fileno(), ctypes.create_string_buffer(whole + bytes(100)), -1)


@scene()
def connect_by_the_other_family():
    mapped = struct.pack("=HHI16sI", socket.AF_INET6, socket.htons(5001), 0, socket.inet_pton(socket.AF_INET6, "::ffff:10.50.0.2"), 0)
    s, t, u = fresh(4), fresh(6), fresh(4)
    yield c("connect", s.fileno(), ctypes.create_string_buffer(mapped), len(mapped))
    plain = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(5001), socket.inet_aton(FAR[4]))
    yield c("connect", t.fileno(), ctypes.create_string_buffer(plain), len(plain))
    yield c("connect", u.fileno(), ctypes.create_string_buffer(struct.pack("=H26x", 77)), 16)


@scene(("opened",), ("fresh",))
def connect_to_nothing_dissolves(kind):
    s = opened("s5 w900") if kind == "opened" else fresh()
    yield c("connect", s.fileno(), ctypes.create_string_buffer(16), 16)
    yield call(s.getpeername), call(s.recv, 10), call(s.send, b"x"), wait(s, select.POLLIN | select.POLLOUT, 0)
    yield call(s.connect, (FAR[4], 5001)), call(s.send, b"s3 c\n"), call(s.recv, 3, socket.MSG_WAITALL)


@scene(("epoll_wait",), ("epoll_pwait",))
def events_at_odd_places(name):
    s = opened("s5 w900")
    wait(s)
    p = select.epoll()
    p.register(s, IN)
    rest = (0, None) if name == "epoll_pwait" else (0,)
    room = ctypes.create_string_buffer(12 * 10)
    yield [c(name, p.fileno(), room, count, *rest) for count in (10, 1, 0, -1)], c(name, p.fileno(), None, 10, *rest)
    yield c(name, s.fileno(), room, 1, *rest), c(name, 9999, room, 1, *rest)


@scene(("opened",), ("listener",))
def epoll_ctl_at_odd_places(kind):
    s = opened("s5 w900")
    if kind == "listener":
        s = fresh()
        s.bind((NEAR[4], 0))
        s.listen(5)
        wait(s, select.POLLIN, 0)
    p = select.epoll()
    event = ctypes.create_string_buffer(12)
    add, delete, modify = 1, 2, 3
    yield c("epoll_ctl", p.fileno(), add, s.fileno(), None), c("epoll_ctl", p.fileno(), 9, s.fileno(), event)
    yield c("epoll_ctl", s.fileno(), add, s.fileno(), event), c("epoll_ctl", p.fileno(), add, 9999, event), c("epoll_ctl", 9999, add, s.fileno(), event)
    yield c("epoll_ctl", p.fileno(), modify, s.fileno(), event), c("epoll_ctl", p.fileno(), delete, s.fileno(), None)
    yield c("epoll_ctl", p.fileno(), add, s.fileno(), event), c("epoll_ctl", p.fileno(), add, s.fileno(), event)
    yield c("epoll_ctl", p.fileno(), modify, s.fileno(), None), c("epoll_ctl", p.fileno(), delete, s.fileno(), None)


@scene()
def exclusive_is_for_adding_only():
    s = opened("s5 w900", blocking=False)
    exclusive = select.EPOLLEXCLUSIVE
    p = select.epoll()
    yield call(p.register, s, IN | exclusive | ONE), call(p.register, s, IN | exclusive | RDHUP), call(p.register, s, IN | exclusive)
    yield call(p.modify, s, IN), call(p.modify, s, IN | exclusive)
    p.unregister(s)
    p.register(s, IN)
    yield call(p.modify, s, IN | exclusive)


@scene()
def time_of_select_is_updated():
    s = opened("w900")
    limit = (ctypes.c_long * 2)(0, 60000)
    sets = ctypes.create_string_buffer(128)
    sets[s.fileno() // 8] = 1 << (s.fileno() % 8)
    yield c("select", s.fileno() + 1, sets, None, None, limit), list(limit), sets.raw.count(b"\0")


@scene(*[(seconds, micros) for seconds, micros in ((-1, 0), (0, -1), (0, 1000000), (0, 999999999))])
def times_that_are_none(seconds, micros):
    s = opened("s1 w900")
    wait(s)
    sets = ctypes.create_string_buffer(128)
    sets[s.fileno() // 8] = 1 << (s.fileno() % 8)
    yield c("select", s.fileno() + 1, sets, None, None, (ctypes.c_long * 2)(seconds, micros))
    polled = ctypes.create_string_buffer(struct.pack("ihh", s.fileno(), select.POLLIN, 0))
    yield c("ppoll", polled, 1, (ctypes.c_long * 2)(seconds, micros * 1000), None, 8)


@scene()
def select_of_bad_counts():
    s = opened("s1 w900")
    wait(s)
    sets = ctypes.create_string_buffer(128)
    sets[s.fileno() // 8] = 1 << (s.fileno() % 8)
    now = (ctypes.c_long * 2)(0, 0)
    yield c("select", -1, sets, None, None, now), c("select", 0, sets, None, None, now)
    yield c("select", s.fileno(), sets, None, None, now), sets.raw.count(b"\0")
