"""Waiting: epoll(7), poll(2), select(2)."""
import tempfile

from scene import *


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


@scene((IN,), (IN | ONE,), (IN | ONE | ET,), (OUT | ONE,))
def a_watch_from_before_connect_goes_on_after_it(flags):
    p = select.epoll()
    s = fresh()
    s.setblocking(False)
    p.register(s, flags)
    yield events(p, 0), events(p, 0)
    yield call(s.connect, (FAR[4], 9))
    time.sleep(0.05)
    yield events(p, 0), events(p, 0)
    p.modify(s, flags)
    yield events(p, 0), events(p, 0)


@scene()
def a_lower_limit_for_readers_is_no_news_of_an_error():
    s = fresh()
    s.setblocking(False)
    yield call(s.connect, (FAR[4], 9))
    time.sleep(0.05)
    p = select.epoll()
    p.register(s, IN | ET)
    yield events(p, 0), events(p, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    yield events(p, 0)
    s = opened("s5 w100 h e", blocking=False)
    p.register(s, IN | ET)
    yield events(p)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 9)
    yield events(p, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    yield events(p, 0)
    time.sleep(0.2)
    yield events(p, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 9)
    yield events(p, 0)


LARGE = 16_000_000


def one_part(s):
    return 0 < s.send(bytes(LARGE)) < LARGE


def one_part_of_a_file(s):
    with tempfile.TemporaryFile() as file:
        file.truncate(LARGE)
        return 0 < os.sendfile(s.fileno(), file.fileno(), 0, LARGE) < LARGE


def as_long_as_poll_says_so(s):
    while wait(s, select.POLLOUT, 0):
        s.send(bytes(1000))


def as_long_as_epoll_says_so(s):
    p = select.epoll()
    p.register(s, OUT)
    while p.poll(0):
        s.send(bytes(1000))


def until_there_is_no_room(s):
    try:
        while s.send(bytes(1000)):
            pass
    except BlockingIOError:
        return "EAGAIN"


@scene(*[
    (fill, flags, when)
    for fill in (one_part, one_part_of_a_file, as_long_as_poll_says_so, as_long_as_epoll_says_so, until_there_is_no_room)
    for flags in (OUT, OUT | ET, OUT | ONE, IN | OUT | ET)
    for when in ("before", "after", "modified")
])
def epoll_for_room(fill, flags, when):
    """All ways to find that there is no room make room be told, the one that just does not write more among them."""
    s = opened("w300 e c", blocking=False)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100_000)
    p = select.epoll()
    if when != "after":
        p.register(s, flags if when == "before" else IN)
        yield events(p, 0)
    yield fill(s)
    if when == "after":
        p.register(s, flags)
    elif when == "modified":
        p.modify(s, flags)
    yield events(p, 0), events(p, 3)


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


@scene((IN,), (IN | ET,), (IN | select.EPOLLEXCLUSIVE,), together=True)
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


@scene(alone=True)
def threads_that_watch_a_listener_at_once():
    results = set()
    for _ in range(30):
        s = listening(0)
        s.setblocking(False)
        sets = [select.epoll(), select.epoll()]
        both = threading.Barrier(2)
        threads = [threading.Thread(target=lambda p: (both.wait(), p.register(s, IN)), args=(p,)) for p in sets]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        ask(f"{NEAR[4]} {s.getsockname()[1]} w300 c")
        told_of = [len(events(p, 3)) for p in sets]
        c = s.accept()[0]
        results.add((*told_of, *(len(events(p, 0)) for p in sets)))
        c.close()
    yield results


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


@scene(alone=True)
def a_handler_writes_to_the_connection_that_waits():
    s = opened("o")
    before = signal.signal(signal.SIGALRM, lambda *_: s.send(b"abc"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    yield told(s.recv(3, socket.MSG_WAITALL))
    signal.signal(signal.SIGALRM, before)


@scene(alone=True)
def descriptors_of_threads_that_waited():
    s = opened("w200 c", blocking=False)
    wait(s, select.POLLIN, 1)
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


@scene(alone=True)
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


def readable(blocking=False):
    s = opened("s5 w900", blocking=blocking)
    wait(s)
    return s


def ready_of(p, names, timeout=0.3):
    """What is ready, by name."""
    return sorted((names[fd], e) for fd, e in p.poll(timeout))


@scene(("pipe",), ("eventfd",), ("timerfd",), ("udp",), ("file",))
def epoll_beside(kind):
    s = opened("w60 s5 w900", blocking=False)
    p = select.epoll()
    p.register(s, IN)
    into = ctypes.create_string_buffer(b"\1" + bytes(7))
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if kind == "pipe":
        fd, w = os.pipe()
        make = lambda: os.write(w, b"x")
    elif kind == "eventfd":
        fd = c("eventfd", 0, 0)
        make = lambda: c("write", fd, into, 8)
    elif kind == "timerfd":
        fd = c("timerfd_create", 1, 0)
        make = lambda: c("timerfd_settime", fd, 0, (ctypes.c_long * 4)(0, 0, 0, 1000000), None)
    elif kind == "udp":
        u.bind((NEAR[4], 0))
        fd = u.fileno()
        make = lambda: u.sendto(b"x", u.getsockname())
    else:
        fd = os.open("/etc/passwd", os.O_RDONLY)
        make = lambda: None
    registered = call(p.register, fd, IN)
    yield registered
    if registered is None:
        make()
        names = {fd: "it", s.fileno(): "stream"}
        yield ready_of(p, names), ready_of(p, names)
        wait(s)
        yield ready_of(p, names)
        s.recv(10)
        yield ready_of(p, names), call(p.unregister, fd), ready_of(p, names, 0)


@scene((IN,), (IN | ET,), (IN | ONE,), (OUT | ET,), (IN | OUT | ET,))
def epoll_nested(flags):
    s = opened("w60 s5 w60 s5 w900", blocking=False)
    inner, outer = select.epoll(), select.epoll()
    inner.register(s, flags)
    outer.register(inner.fileno(), IN)
    for _ in range(3):
        yield [e for _, e in outer.poll(0.1)], [e for _, e in inner.poll(0)]


@scene()
def epoll_nested_before_the_stream():
    inner, outer = select.epoll(), select.epoll()
    outer.register(inner.fileno(), IN)
    s = readable()
    inner.register(s, IN)
    yield events(outer, 0.2), wait(inner, select.POLLIN, 100), events(inner, 0)
    s.recv(10)
    yield events(outer, 0), wait(inner, select.POLLIN, 0)


@scene()
def poll_of_an_epoll_set():
    s = opened("w60 s5 w900", blocking=False)
    p = select.epoll()
    p.register(s, IN)
    yield wait(p, select.POLLIN, 0), wait(p, select.POLLIN, 1000), len(select.select([p], [], [], 0)[0])
    s.recv(10)
    yield wait(p, select.POLLIN, 0), len(select.select([p], [], [], 0)[0])


@scene((IN,), (IN | ET,), (IN | ONE,), (IN | select.EPOLLEXCLUSIVE,))
def epoll_by_two_threads(flags):
    s = opened("w80 s5 w900", blocking=False)
    p = select.epoll()
    p.register(s, flags)
    found = []
    threads = [threading.Thread(target=lambda: found.append(len(p.poll(0.4)))) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    yield max(found), sum(found) >= 1, sum(found) if flags & (ET | ONE) else "-"


@scene((IN,), (IN | ET,))
def epoll_by_two_sets(flags):
    s = opened("w60 s5 w900", blocking=False)
    sets = [select.epoll() for _ in range(2)]
    for p in sets:
        p.register(s, flags)
    yield [events(p) for p in sets], [events(p, 0) for p in sets]
    s.recv(10)
    yield [events(p, 0) for p in sets]


@scene((IN,), (IN | ET,), (IN | ONE,))
def epoll_armed_again_while_readable(flags):
    s = readable()
    p = select.epoll()
    p.register(s, flags)
    for change in (flags, OUT, flags | RDHUP, 0, flags):
        yield events(p, 0), call(p.modify, s, change)
    yield events(p, 0)


@scene()
def epoll_of_a_closed_duplicate():
    s = readable()
    d = s.dup()
    p = select.epoll()
    p.register(d, IN)
    yield events(p, 0)
    s.close()
    yield events(p, 0)
    d.close()
    yield events(p, 0)


@scene(("closed",), ("replaced",), alone=True)
def epoll_of_a_descriptor_with_an_open_duplicate(how):
    s, other = readable(), readable()
    d = s.dup()
    p = select.epoll()
    p.register(s, IN)
    number = s.fileno()
    if how == "closed":
        s.close()
        yield call(p.unregister, number), len(p.poll(0))
        os.close(os.dup(d.fileno()))
        s = other.dup()
    else:
        os.dup2(other.fileno(), number)
    yield s.fileno() == number, [fd == number for fd, _ in p.poll(0)], call(p.modify, s, OUT), call(p.unregister, s)
    yield call(p.register, s, IN), [fd == number for fd, _ in p.poll(0)], call(p.register, d, IN), len(p.poll(0))
    d.close()
    yield len(p.poll(0)), call(p.unregister, s), len(p.poll(0))


@scene()
def epoll_of_a_listener_with_an_open_duplicate():
    s = listening(0)
    p = select.epoll()
    p.register(s, IN)
    d = s.dup()
    port = s.getsockname()[1]
    s.close()
    yield events(p, 0)
    ask(f"{NEAR[4]} {port} s5 w900")
    yield events(p), d.accept()[0] is not None
    d.close()
    yield events(p, 0)


@scene()
def epoll_of_a_closed_stream_and_its_successor():
    s = readable()
    p = select.epoll()
    p.register(s, IN)
    s.close()
    t = readable()
    yield events(p, 0), call(p.register, t, IN), events(p, 0)


@scene()
def epoll_order_of_arrival():
    p = select.epoll()
    socks = [opened(f"w{delay} s1 w900", blocking=False) for delay in (120, 40, 80)]
    for s in socks:
        p.register(s, IN)
    time.sleep(0.25)
    order = [s.fileno() for s in socks]
    yield [order.index(fd) for fd, _ in p.poll(0)], [order.index(fd) for fd, _ in p.poll(0, 1)]


@scene()
def epoll_edge_by_arrivals():
    s = opened("s5 w60 s5 w60 s5 w900", blocking=False)
    p = select.epoll()
    p.register(s, IN | ET)
    yield [events(p, 0.3) for _ in range(4)], told(s.recv(100))


@scene()
def epoll_edge_for_writing_after_full():
    s = opened("w300 e", blocking=False)
    p = select.epoll()
    p.register(s, OUT | ET)
    yield events(p, 0), events(p, 0)
    try:
        while True:
            s.send(b"x" * 100000)
    except BlockingIOError:
        pass
    yield events(p, 2)


@scene((RDHUP,), (IN | RDHUP | ET,), (IN | ET,), (ET,))
def epoll_of_ends(flags):
    s = opened("w60 h w60 x", blocking=False)
    p = select.epoll()
    p.register(s, flags)
    wait(s, select.POLLRDHUP)
    yield events(p, 0.02)
    wait(s, select.POLLHUP)
    yield events(p, 0.02), events(p, 0), call(s.recv, 1), events(p, 0)


@scene()
def epoll_after_the_own_shutdown():
    s = opened("w900", blocking=False)
    p = select.epoll()
    p.register(s, IN | OUT | RDHUP | ET)
    yield events(p, 0), s.shutdown(socket.SHUT_WR), events(p, 0), s.shutdown(socket.SHUT_RD), events(p, 0)


@scene((0,), (1,), (40,))
def epoll_waits_so_long(ms):
    s = opened("w900", blocking=False)
    p = select.epoll()
    p.register(s, IN)
    room = ctypes.create_string_buffer(120)
    began = time.monotonic()
    yield c("epoll_wait", p.fileno(), room, 10, ms), ms / 1000 <= time.monotonic() - began < ms / 1000 + 0.2
    limit = (ctypes.c_long * 2)(0, ms * 1000000)
    began = time.monotonic()
    yield c("epoll_pwait2", p.fileno(), room, 10, limit, None, 8), ms / 1000 <= time.monotonic() - began < ms / 1000 + 0.2


@scene()
def poll_of_nothing_and_negative_numbers():
    s = readable()
    polled = ctypes.create_string_buffer(struct.pack("ihhihhihh", -1, 1, 7, s.fileno(), 1, 7, -5, 4, 7))
    yield c("poll", polled, 3, 0), struct.unpack("ihhihhihh", polled.raw[:24])[2::3], c("poll", polled, 0, 10), c("poll", None, 0, 0)


@scene()
def poll_of_one_twice():
    s = readable()
    polled = ctypes.create_string_buffer(struct.pack("ihhihhihh", s.fileno(), 1, 0, s.fileno(), 4, 0, s.fileno(), 0, 0))
    yield c("poll", polled, 3, 0), struct.unpack("ihhihhihh", polled.raw[:24])[2::3]


@scene(alone=True)
def poll_of_a_closed_number():
    s = readable()
    polled = ctypes.create_string_buffer(struct.pack("ihhihh", 97, 1, 0, s.fileno(), 0, 0))
    yield c("poll", polled, 2, 300), struct.unpack("ihhihh", polled.raw[:16])[2::3]


@scene(alone=True)
def select_of_a_closed_number():
    s = readable()
    sets = ctypes.create_string_buffer(128)
    for fd in (s.fileno(), 97):
        sets[fd // 8] = sets[fd // 8][0] | 1 << (fd % 8)
    yield c("select", 98, sets, None, None, (ctypes.c_long * 2)(0, 0))


@scene()
def poll_of_many():
    socks = [readable() for _ in range(20)]
    quiet = [opened("w900") for _ in range(20)]
    p = select.poll()
    for s in socks + quiet:
        p.register(s, select.POLLIN)
    yield len(p.poll(100)), {e for _, e in p.poll(0)}


@scene(alone=True)
def more_than_1024_descriptors():
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(3000, before[1]), before[1]))
    s = readable()
    high = fcntl.fcntl(s, fcntl.F_DUPFD, 2000)
    yield high, wait(high), told(os.read(high, 3)), told(s.recv(2))
    p = select.epoll()
    p.register(high, IN | OUT)
    yield [(fd, e) for fd, e in p.poll(0)]
    polled = struct.pack("ihh", high, 4, 0) * 1500
    room = ctypes.create_string_buffer(polled)
    yield c("poll", room, 1500, 0)
    os.close(high)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@scene()
def select_of_the_three_sets():
    s, t = readable(), opened("w900")
    yield [[x is s for x in part] for part in select.select([s, t], [s], [s, t], 0.2)]
    r, w = os.pipe()
    yield [len(part) for part in select.select([s, r], [w, t], [], 0.2)]


def count_of_readable(how, s):
    """How many sockets a wait of two seconds at most finds, and how long it took."""
    began = time.monotonic()
    if how == "poll":
        found = wait(s, select.POLLIN, 2000)
    elif how == "select":
        found = select.select([s], [], [], 2)[0]
    else:
        p = select.epoll()
        p.register(s, IN)
        found = p.poll(2)
    return len(found), time.monotonic() - began


@scene(("poll",), ("select",), ("epoll",))
def a_wait_ended_by_another_thread(how):
    s = opened("o", blocking=False)
    threading.Timer(0.08, lambda: s.send(b"abc")).start()
    found, took = count_of_readable(how, s)
    yield found, 0.05 < took < 1


@scene(("poll",), ("select",), ("epoll",))
def a_wait_ended_by_the_end_of_reading(how):
    """shutdown(2) of the reading half by another thread sends nothing."""
    s = opened("w1500", blocking=False)
    time.sleep(0.3)  # No timer of the connection is left.
    threading.Timer(0.08, lambda: s.shutdown(socket.SHUT_RD)).start()
    found, took = count_of_readable(how, s)
    yield found, 0.05 < took < 0.5


@scene(("shutdown",), ("data",), ("reading",))
def a_read_ended_by_another_thread(how):
    s = opened("w1500" if how == "reading" else "o")
    time.sleep(0.3)
    act = {
        "shutdown": lambda: s.shutdown(socket.SHUT_RDWR),
        "data": lambda: s.send(b"abc"),
        "reading": lambda: s.shutdown(socket.SHUT_RD),
    }
    threading.Timer(0.08, act[how]).start()
    began = time.monotonic()
    yield call(s.recv, 10), time.monotonic() - began < 0.5
