"""Signals, processes, threads."""
from scene import *


class Alarm(Exception):
    pass


@scene(("recv",), ("poll",), ("epoll",), ("select",), ("accept",), alone=True)
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


@scene(alone=True)
def a_signal_handler_that_returns_goes_on():
    count = []
    before = signal.signal(signal.SIGALRM, lambda *_: count.append(1))
    s = opened("w200 s5 c")
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    yield told(s.recv(10)), len(count)
    signal.signal(signal.SIGALRM, before)


@scene(alone=True)
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


@scene(alone=True)
def a_child_leaves_the_parents_connection_alone():
    s = opened("o")
    if os.fork() == 0:
        s.close()
        os._exit(0)
    os.wait()
    yield s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))


# Its functions keep Python's lock, which no thread of a child would release.
held = ctypes.PyDLL(None, use_errno=True)
BEGINNING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
FORK, CLONE, CLONE3 = 57, 56, 435


def clone_of(act):
    stack = ctypes.create_string_buffer(1 << 20)
    top = ctypes.c_void_p((ctypes.addressof(stack) + (1 << 20)) & ~15)
    return held.clone(BEGINNING(lambda _: act() or 0), top, signal.SIGCHLD, None)


def returning(fork):
    def run(act):
        child = fork()
        if child == 0:
            try:
                act()
            finally:
                os._exit(0)
        return child

    return run


CLONE3_ARGUMENTS = (ctypes.c_uint64 * 11)(0, 0, 0, 0, signal.SIGCHLD)
FORKS = {
    "_Fork": returning(lambda: held._Fork()),
    "fork": returning(lambda: held.syscall(FORK)),
    "clone": returning(lambda: held.syscall(CLONE, signal.SIGCHLD, None, None, None, None)),
    "clone3": returning(lambda: held.syscall(CLONE3, CLONE3_ARGUMENTS, ctypes.sizeof(CLONE3_ARGUMENTS))),
    "clone_by_name": clone_of,
}


@scene(*((name,) for name in FORKS), alone=True)
def a_child_without_handlers_leaves_the_parents_connection_alone(name):
    s = opened("o")
    r, w = os.pipe()

    def act():
        s.close()
        os.write(w, repr(told(all_of(opened("s2000 c")))).encode())

    os.waitpid(FORKS[name](act), 0)
    os.close(w)
    yield os.read(r, 99), s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))
    yield told(all_of(opened("s3000 c")))


def in_child(act):
    """What a child's calls give, as text."""
    r, w = os.pipe()
    if os.fork() == 0:
        try:
            os.write(w, repr(act()).encode())
        finally:
            os._exit(0)
    os.close(w)
    os.wait()
    with os.fdopen(r) as text:
        return text.read()


@scene(alone=True)
def a_child_connects_beside_its_parent():
    s = opened("o")
    for _ in range(3):
        yield in_child(lambda: told(all_of(opened("s20000 c"))))
    yield s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))
    yield told(all_of(opened("s3000 c")))


@scene(alone=True)
def a_parent_connects_beside_a_child_that_accepts():
    s = listening(7131)

    def accept():
        s.accept()[0].close()
        return told(all_of(opened("s2000 c")))

    r, w = os.pipe()
    if os.fork() == 0:
        try:
            os.write(w, repr(accept()).encode())
            time.sleep(0.5)
        finally:
            os._exit(0)
    os.close(w)
    near = fresh()
    near.settimeout(3)
    time.sleep(0.1)
    yield call(ask, f"{NEAR[4]} 7131 c")
    with os.fdopen(r) as text:
        yield text.read(9)
        yield told(all_of(opened("s3000 c")))
        os.wait()
    yield told(all_of(opened("s4000 c")))


@scene()
def many_connections():
    socks = [opened("s3 w300 c", blocking=False) for _ in range(100)]
    for s in socks:
        wait(s)
    yield {told(s.recv(10)) for s in socks}
    for s in socks:
        s.close()


SIGACTION = 8 * 19
SA_RESTART, SA_SIGINFO, SA_NODEFER, SA_RESETHAND = 0x10000000, 4, 0x40000000, 0x80000000
COUNTED = []
HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda *_: COUNTED.append(1))


def handle(flags):
    """Has SIGALRM a handler of C with these flags, in a while; gives the action before."""
    action = ctypes.create_string_buffer(SIGACTION)
    struct.pack_into("Q128si", action, 0, ctypes.cast(HANDLER, ctypes.c_void_p).value, bytes(128), flags)
    before = ctypes.create_string_buffer(SIGACTION)
    c("sigaction", signal.SIGALRM, action, before)
    COUNTED.clear()
    signal.setitimer(signal.ITIMER_REAL, 0.06)
    return before


INTO = ctypes.create_string_buffer(100)


def blocking_calls():
    def timed(s, name):
        s.setsockopt(socket.SOL_SOCKET, name, struct.pack("ll", 0, 300000))
        return s

    def filled(s):
        s.setblocking(False)
        for _ in range(10):
            try:
                while True:
                    s.send(b"x" * 100000)
            except BlockingIOError:
                time.sleep(0.02)
        s.setblocking(True)
        return s

    def by_poll(s):
        polled = ctypes.create_string_buffer(struct.pack("ihh", s.fileno(), 1, 0))
        return c("poll", polled, 1, 200)

    def by_epoll(s):
        p = select.epoll()
        p.register(s, IN)
        return c("epoll_wait", p.fileno(), INTO, 1, 200)

    def by_select(s):
        sets = ctypes.create_string_buffer(128)
        sets[s.fileno() // 8] = 1 << (s.fileno() % 8)
        return c("select", s.fileno() + 1, sets, None, None, (ctypes.c_long * 2)(0, 200000))

    def accepted(s):
        ask(f"{NEAR[4]} {s.getsockname()[1]} w900")
        return s

    def quiet():
        s = fresh()
        s.bind((NEAR[4], 0))
        s.listen(5)
        wait(s, select.POLLIN, 0)
        return s

    def awaited(s):
        # The far end connects after the signal.
        opened(f"w150 k {NEAR[4]} {s.getsockname()[1]} w900").close()
        return s

    fd = lambda s: s.fileno()
    return {
        "recv": (lambda: opened("w150 s5 w900"), lambda s: c("recv", fd(s), INTO, 10, 0)),
        "recv_all": (lambda: opened("s3 w150 s5 w900"), lambda s: c("recv", fd(s), INTO, 8, socket.MSG_WAITALL)),
        "recv_timed": (lambda: timed(opened("w150 s5 w900"), socket.SO_RCVTIMEO), lambda s: c("recv", fd(s), INTO, 10, 0)),
        "read": (lambda: opened("w150 s5 w900"), lambda s: c("read", fd(s), INTO, 10)),
        "accept": (lambda: awaited(quiet()), lambda s: isinstance(r := c("accept", fd(s), None, None), int) and "accepted" or r),
        "send": (lambda: filled(opened("w250 e")), lambda s: c("send", fd(s), ctypes.create_string_buffer(10), 10, 0)),
        "poll": (lambda: opened("w150 s5 w900"), by_poll),
        "epoll": (lambda: opened("w150 s5 w900"), by_epoll),
        "select": (lambda: opened("w150 s5 w900"), by_select),
    }


@scene(*[(call_name, flags) for call_name in ("recv", "recv_all", "recv_timed", "read", "accept", "send", "poll", "epoll", "select") for flags in (0, SA_RESTART)], alone=True)
def a_handler_returns_within(call_name, flags):
    make, run = blocking_calls()[call_name]
    s = make()
    before = handle(flags)
    yield run(s), len(COUNTED)
    signal.setitimer(signal.ITIMER_REAL, 0)
    c("sigaction", signal.SIGALRM, before, None)


@scene((0,), (SA_RESTART,), (SA_RESTART | SA_NODEFER,), (SA_RESETHAND,), alone=True)
def an_action_is_told(flags):
    before = handle(flags)
    signal.setitimer(signal.ITIMER_REAL, 0)
    told_back = ctypes.create_string_buffer(SIGACTION)
    yield c("sigaction", signal.SIGALRM, None, told_back)
    handler, mask, got = struct.unpack_from("Q128si", told_back)
    # The C library adds a flag of its own.
    yield handler == ctypes.cast(HANDLER, ctypes.c_void_p).value, (got & 0xFFFFFFFF) & ~0x04000000 == flags, any(mask)
    signal.setitimer(signal.ITIMER_REAL, 0)
    c("sigaction", signal.SIGALRM, before, None)
    yield c("sigaction", 9, told_back, None), c("sigaction", 99, None, told_back), c("sigaction", 0, None, told_back)


@scene(alone=True)
def a_handler_by_signal_is_told():
    function = ctypes.CDLL(None).signal
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_int, ctypes.c_void_p)
    own = ctypes.cast(HANDLER, ctypes.c_void_p).value
    before = function(signal.SIGUSR2, own)
    COUNTED.clear()
    os.kill(os.getpid(), signal.SIGUSR2)
    yield function(signal.SIGUSR2, 1) == own, function(signal.SIGUSR2, before), len(COUNTED)


@scene(alone=True)
def ignored_signals_end_nothing():
    s = opened("w150 s5 w900")
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    yield c("recv", s.fileno(), INTO, 10, 0)
    signal.signal(signal.SIGALRM, before)


@scene(("ppoll",), ("epoll_pwait",), ("pselect",), alone=True)
def a_blocked_signal_is_let_in(how):
    s = opened("w900")
    before = handle(0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(0.08)
    none = ctypes.create_string_buffer(128)
    limit = (ctypes.c_long * 2)(0, 200000000)
    p = select.epoll()
    p.register(s, IN)
    if how == "ppoll":
        polled = ctypes.create_string_buffer(struct.pack("ihh", s.fileno(), 1, 0))
        yield c("ppoll", polled, 1, limit, none), len(COUNTED)
    elif how == "epoll_pwait":
        yield c("epoll_pwait", p.fileno(), INTO, 1, 200, none), len(COUNTED)
    else:
        sets = ctypes.create_string_buffer(128)
        sets[s.fileno() // 8] = 1 << (s.fileno() % 8)
        yield c("pselect", s.fileno() + 1, sets, None, None, limit, none), len(COUNTED)
    yield c("recv", s.fileno(), INTO, 10, socket.MSG_DONTWAIT), len(COUNTED)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, 0)
    c("sigaction", signal.SIGALRM, before, None)


@scene(alone=True)
def a_blocked_signal_stays_blocked():
    s = opened("w150 s5 w900")
    before = handle(0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    yield c("recv", s.fileno(), INTO, 10, 0), len(COUNTED)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    yield len(COUNTED)
    signal.setitimer(signal.ITIMER_REAL, 0)
    c("sigaction", signal.SIGALRM, before, None)


@scene(alone=True)
def children_one_after_the_other():
    s = opened("o")
    codes = []
    for _ in range(5):
        child = os.fork()
        if child == 0:
            os._exit(7)
        codes.append(os.waitpid(child, 0)[1] >> 8)
    yield codes, s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))


@scene(alone=True)
def another_program_runs():
    import subprocess

    s = opened("o")
    yield subprocess.run(["/bin/echo", "hi"], stdout=subprocess.PIPE).stdout, s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))
    yield os.system("exit 3") >> 8, s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))


@scene(alone=True)
def threads_with_connections_of_their_own():
    got = []

    def talk(i):
        s = opened("o")
        for _ in range(20):
            s.sendall(bytes([i]) * 50)
            got.append(s.recv(50, socket.MSG_WAITALL) == bytes([i]) * 50)

    threads = [threading.Thread(target=talk, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    yield len(got), all(got)


@scene(alone=True)
def a_reader_beside_a_writer():
    s = opened("o")
    said = bytes(i % 256 for i in range(2000000))
    writer = threading.Thread(target=lambda: (s.sendall(said), s.shutdown(socket.SHUT_WR)))
    writer.start()
    yield all_of(s) == said
    writer.join()


def action_of(number):
    """sigaction(2) as it tells: the handler, and the flags without that of the C library."""
    action = (ctypes.c_ulong * 19)()
    ctypes.CDLL(None).sigaction(number, None, ctypes.byref(action))
    return "default" if action[0] == 0 else "ignored" if action[0] == 1 else "own", action[17] & 0xFBFFFFFF


ENDING = ["SIGHUP", "SIGINT", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGUSR1", "SIGUSR2"]


@scene(*[(name,) for name in ENDING], alone=True)
def a_signal_without_a_handler_ends_the_process(name):
    """What it has written arrives, and its parent hears which signal it was."""
    number = getattr(signal, name)
    child = os.fork()
    if child == 0:
        signal.signal(number, signal.SIG_DFL)
        listener = listening(7117)
        before = action_of(number)
        ask(f"{NEAR[4]} 7117 r60000 e c")
        c = listener.accept()[0]
        after = action_of(number)
        signal.signal(number, signal.SIG_IGN)
        os.kill(os.getpid(), number)
        ignored = action_of(number)
        signal.signal(number, signal.SIG_DFL)
        again = action_of(number)
        told_all = f"{before} {after} {ignored} {again}".encode()
        os.write(1, told_all + b"\n")
        c.sendall(bytes(60000))
        os.kill(os.getpid(), number)
        time.sleep(3)
        os._exit(1)
    yield os.waitpid(child, 0)[1]


@scene(alone=True)
def a_signal_that_is_blocked_waits():
    child = os.fork()
    if child == 0:
        s = opened("o")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGTERM)
        s.send(b"abc")
        got = s.recv(3, socket.MSG_WAITALL)
        pending = signal.sigpending()
        taken = signal.sigwait([signal.SIGTERM])
        os._exit(len(got) * 10 + len(pending) + (taken == signal.SIGTERM))
    yield os.waitpid(child, 0)[1]


@scene(alone=True)
def a_signal_ends_a_process_that_waits_in_a_call():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        s = opened("o")
        threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        s.recv(1)
        os._exit(1)
    began = time.monotonic()
    yield os.waitpid(child, 0)[1], time.monotonic() - began < 1
