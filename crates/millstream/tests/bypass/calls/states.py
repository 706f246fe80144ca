"""Each call in each state of a socket."""
import tempfile

from scene import *

RESET = struct.pack("ii", 1, 0)
ANY = select.POLLIN | select.POLLOUT | select.POLLPRI | select.POLLRDHUP


def connecting():
    s = fresh()
    s.setblocking(False)
    s.connect_ex((FAR[4], SILENT))
    return s


def refused():
    s = fresh()
    s.setblocking(False)
    s.connect_ex((FAR[4], 9))
    wait(s, select.POLLOUT)
    return s


def refused_and_told():
    s = refused()
    s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return s


def after(words, event, how=None):
    """A socket that does not wait, after something has arrived, and with this half shut."""
    s = opened(words, blocking=False)
    if event:
        wait(s, event)
    if how is not None:
        s.shutdown(how)
    return s


def over():
    """Both ends have ended, and have seen it."""
    s = after("c", select.POLLRDHUP, socket.SHUT_WR)
    time.sleep(0.05)
    return s


def reset_and_told():
    s = after("w20 x", select.POLLHUP)
    call(s.recv, 1)
    return s


def listener():
    # Of an ephemeral port: so that these scenes may run at the same time.
    s = fresh()
    s.bind((NEAR[4], 0))
    s.listen(5)
    s.setblocking(False)
    wait(s, select.POLLIN, 0)
    return s


def unconnected():
    s = fresh()
    s.setblocking(False)
    return s


def bound():
    s = unconnected()
    s.bind((NEAR[4], 0))
    return s


def accepted():
    s = listener()
    ask(f"{NEAR[4]} {s.getsockname()[1]} s10 w900 c")
    wait(s)
    c = s.accept()[0]
    c.setblocking(False)
    wait(c)
    return c


STATES = {
    "unconnected": unconnected,
    "bound": bound,
    "connecting": connecting,
    "refused": refused,
    "refused_and_told": refused_and_told,
    "empty": lambda: after("w900 c", None),
    "readable": lambda: after("s100 w900 c", select.POLLIN),
    "half_closed": lambda: after("h w900", select.POLLRDHUP),
    "readable_and_half_closed": lambda: after("s100 h w900", select.POLLRDHUP),
    "reset": lambda: after("w20 x", select.POLLHUP),
    "reset_and_told": reset_and_told,
    "readable_and_reset": lambda: after("s100 w20 x", select.POLLHUP),
    "shut_for_reading": lambda: after("w900", None, socket.SHUT_RD),
    "shut_for_writing": lambda: after("w900", None, socket.SHUT_WR),
    "shut_for_writing_with_bytes": lambda: after("s100 w900", select.POLLIN, socket.SHUT_WR),
    "shut": lambda: after("w900", None, socket.SHUT_RDWR),
    "over": over,
    "listener": listener,
    "accepted": accepted,
}


def in_each_state(act):
    """Registers a scene for each state: the act, and then what is left."""

    def run(state):
        s = STATES[state]()
        yield from act(s)
        yield wait(s, ANY, 0)
        s.close()

    run.__name__ = act.__name__
    scene(*[(state,) for state in STATES])(run)
    return act


@in_each_state
def polled(s):
    yield wait(s, 0, 0), wait(s, select.POLLIN, 0), wait(s, ANY | 0x40 | 0x80 | 0x100 | 0x200, 0)


@in_each_state
def selected(s):
    yield [[len(x) for x in select.select(r, w, e, 0)] for r, w, e in (([s], [], []), ([], [s], []), ([], [], [s]), ([s], [s], [s]))]


@in_each_state
def watched(s):
    p = select.epoll()
    for flags in (IN | OUT | RDHUP, IN | OUT | RDHUP | ET, IN | ONE, 0):
        yield call(p.register, s, flags), [e for _, e in p.poll(0)], [e for _, e in p.poll(0)]
        p.unregister(s)


@in_each_state
def named(s):
    def address(get):
        host, port = get()
        return host, port if port in (5001, 9) else port > 0

    yield call(address, s.getpeername), call(address, s.getsockname)


@in_each_state
def asked_for_its_error(s):
    yield [call(s.getsockopt, socket.SOL_SOCKET, socket.SO_ERROR) for _ in range(3)]
    yield call(s.recv, 10), call(s.send, b"x")


@in_each_state
def asked_for_its_state(s):
    yield call(lambda: s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0])
    yield call(s.getsockopt, socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


@in_each_state
def counted(s):
    time.sleep(0.15)
    yield number_of(s, termios.FIONREAD), number_of(s, termios.TIOCOUTQ)


@in_each_state
def read(s):
    yield call(os.read, s.fileno(), 0), call(os.read, s.fileno(), 60), call(os.read, s.fileno(), 60), call(os.read, s.fileno(), 60)


def reading(name, flags):
    def act(s):
        yield call(s.recv, 60, flags), call(s.recv, 60, flags), call(s.recv, 60, flags)

    act.__name__ = f"read_{name}"
    in_each_state(act)


reading("by_peeking", socket.MSG_PEEK)
reading("in_full", socket.MSG_WAITALL | socket.MSG_DONTWAIT)
reading("out_of_band", socket.MSG_OOB)


@in_each_state
def read_and_thrown_away(s):
    # What the buffer holds afterwards is not said.
    yield [call(lambda: len(s.recv(60, socket.MSG_TRUNC))) for _ in range(3)], call(s.recv, 60)


@in_each_state
def read_as_messages(s):
    def message():
        data, ancillary, flags, address = s.recvmsg(60, 60)
        return told(data), ancillary, flags, address

    yield call(message), call(s.recvfrom, 60), call(message)


@in_each_state
def read_for_errors(s):
    yield call(s.recv, 60, socket.MSG_ERRQUEUE), call(s.recv, 60)


@in_each_state
def read_into_nothing(s):
    yield call(s.recv, 0), call(s.recv, 0, socket.MSG_PEEK), call(os.readv, s.fileno(), [bytearray(0)]), call(s.recv, 60)


@in_each_state
def written(s):
    yield call(os.write, s.fileno(), b"ab"), call(os.write, s.fileno(), b"")
    yield call(os.writev, s.fileno(), [b"ab", b"", b"c"]), call(os.writev, s.fileno(), [b""])


def writing(name, flags):
    def act(s):
        yield call(s.send, b"ab", flags), call(s.send, b"", flags), call(s.sendmsg, [b"c"], [], flags)

    act.__name__ = f"written_{name}"
    in_each_state(act)


writing("with_more", socket.MSG_MORE)
writing("without_waiting", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


@in_each_state
def written_to_an_address(s):
    yield call(s.sendto, b"x", (FAR[4], 5001)), call(s.sendmsg, [b"x"], [], 0, (FAR[4], 5001))


@in_each_state
def sent_a_file(s):
    with tempfile.TemporaryFile() as f:
        f.write(b"x" * 100)
        f.flush()
        yield call(os.sendfile, s.fileno(), f.fileno(), 0, 50), call(os.sendfile, s.fileno(), f.fileno(), 100, 50)
        yield call(os.sendfile, s.fileno(), f.fileno(), 0, 0)


def shutting(name, how):
    def act(s):
        yield call(s.shutdown, how), wait(s, 0x40, 50), wait(s, ANY, 0), call(s.shutdown, how)
        yield call(s.recv, 10), call(s.send, b"x")

    act.__name__ = f"shut_{name}"
    in_each_state(act)


shutting("for_reading", socket.SHUT_RD)
shutting("for_writing", socket.SHUT_WR)
shutting("for_both", socket.SHUT_RDWR)
shutting("wrongly", 3)


@in_each_state
def connected_again(s):
    yield call(s.connect, (FAR[4], 9)), call(s.connect, (FAR[4], SILENT))


@in_each_state
def bound_again(s):
    yield call(s.bind, (NEAR[4], 0))


@in_each_state
def told_to_listen(s):
    yield call(s.listen, 5), call(s.getsockopt, socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


@in_each_state
def told_to_accept(s):
    yield call(s.accept)


@in_each_state
def set_to_wait_for_a_while(s):
    s.setblocking(True)
    for name in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        s.setsockopt(socket.SOL_SOCKET, name, struct.pack("ll", 0, 20000))
    yield call(s.recv, 200, socket.MSG_PEEK), call(s.recv, 200, socket.MSG_WAITALL), call(s.recv, 10)
    yield call(s.send, b"x")


@in_each_state
def duplicated(s):
    d = s.dup()
    yield wait(d, ANY, 0), d.getblocking(), call(d.recv, 60), call(d.send, b"x")
    d.close()


@in_each_state
def reset_by_linger(s):
    yield call(s.setsockopt, socket.SOL_SOCKET, socket.SO_LINGER, RESET), call(s.getsockopt, socket.SOL_SOCKET, socket.SO_LINGER, 8)
