"""Forked children that use connections of their parent."""
from scene import *
from processes import in_child


@scene((4,), (6,), alone=True)
def a_child_speaks_for_its_parent(version):
    s = opened("o", version)
    for _ in range(2):
        yield in_child(lambda: (s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))))


@scene((1,), (100000,), (3000000,), alone=True)
def a_child_reads_to_the_end(size):
    s = opened(f"s{size} c")
    yield in_child(lambda: (told(all_of(s)), call(s.recv, 1)))


@scene((1,), (100000,), (2000000,), alone=True)
def a_child_writes_all(size):
    s = opened(f"r{size} s5 c")
    yield in_child(lambda: (call(s.sendall, b"x" * size), told(all_of(s))))


@scene(alone=True)
def the_parent_closes_and_the_child_goes_on():
    s = opened("o")
    r, w = os.pipe()
    if os.fork() == 0:
        time.sleep(0.1)
        os.write(w, repr((s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL)))).encode())
        os._exit(0)
    s.close()
    os.close(w)
    yield os.read(r, 99)
    os.wait()


@scene(alone=True)
def what_the_parent_has_not_read_is_the_childs():
    s = opened("s1000 w50 s1000 c")
    wait(s)
    yield told(s.recv(10))
    yield in_child(lambda: told(all_of(s)))


@scene((socket.SHUT_WR,), (socket.SHUT_RDWR,), alone=True)
def a_child_shuts_down(how):
    s = opened("e s7 c")
    yield in_child(lambda: (call(s.shutdown, how), call(s.send, b"x") in ("EPIPE", "ECONNRESET"), told(all_of(s)) if how == socket.SHUT_WR else ""))


@scene(alone=True)
def a_child_reads_where_its_parent_writes_no_more():
    s = opened("e s3000 c")
    s.shutdown(socket.SHUT_WR)
    yield in_child(lambda: (told(all_of(s)), call(s.send, b"x")))
    s = opened("e s3000 c")
    s.shutdown(socket.SHUT_WR)
    r, w = os.pipe()
    yield spawned(["/bin/cat"], [(0, s.fileno()), (1, w)])
    os.close(w)
    with os.fdopen(r, "rb") as text:
        yield told(text.read())


@scene(alone=True)
def a_child_has_the_connections_names_and_options():
    s = opened("o")
    names = s.getpeername(), s.getsockname()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def act():
        yield (s.getpeername(), s.getsockname()) == names
        yield call(s.connect, (FAR[4], 5001)), call(s.accept), call(s.listen, 5)
        yield s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        yield s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        yield [s.getsockopt(socket.SOL_SOCKET, name) for name in (socket.SO_TYPE, socket.SO_ERROR, 38, 39, socket.SO_ACCEPTCONN)]
        yield call(s.setsockopt, socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 0), call(s.setsockopt, socket.IPPROTO_TCP, 200, 1)
        yield (s.getpeername(), s.getsockname()) == names, s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))

    yield in_child(lambda: list(act()))


@scene(("poll",), ("select",), ("epoll",), alone=True)
def a_child_waits(how):
    s = opened("r1 w100 s3 w100 c", blocking=False)

    def act():
        yield call(s.recv, 1)
        p = select.epoll()
        if how == "epoll":
            p.register(s, IN | OUT)
        waits = {
            "poll": lambda: wait(s, select.POLLIN | select.POLLRDHUP, 700),
            "select": lambda: [len(ready) for ready in select.select([s], [s], [], 0.7)],
            "epoll": lambda: [event for _, event in p.poll(0.7)],
        }
        if how != "poll":
            yield waits[how]()
        s.send(b"x")
        time.sleep(0.15)
        yield waits[how](), call(s.recv, 9), call(s.recv, 9)
        time.sleep(0.15)
        yield waits[how](), call(s.recv, 9)

    yield in_child(lambda: list(act()))


@scene(alone=True)
def a_child_does_not_block_where_its_parent_does_not():
    s = opened("w300 s5 c", blocking=False)
    r = opened("w100 s5 c")
    yield in_child(lambda: (call(s.recv, 1), told(r.recv(9)), fcntl.fcntl(s, fcntl.F_GETFL) & os.O_NONBLOCK, fcntl.fcntl(r, fcntl.F_GETFL) & os.O_NONBLOCK))


@scene(alone=True)
def a_child_has_as_much_time_as_its_parent():
    s = opened("w500 c")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 60000))
    began = time.monotonic()
    yield in_child(lambda: call(s.recv, 1)), time.monotonic() - began < 0.4


@scene(alone=True)
def a_child_hears_that_the_peer_has_gone():
    s = opened("r1 c")

    def act():
        yield s.send(b"x"), call(s.recv, 1)
        time.sleep(0.05)
        yield call(s.send, b"x") in ("EPIPE", 1)
        time.sleep(0.1)
        yield call(s.send, b"x"), call(s.send, b"x")

    yield in_child(lambda: list(act()))


@scene(alone=True)
def duplicates_in_a_child_are_one_connection():
    s = opened("o")

    def act():
        fd = os.dup(s.fileno())
        to = os.dup2(s.fileno(), 200)
        yield os.write(fd, b"ab"), os.write(to, b"cd"), told(s.recv(4, socket.MSG_WAITALL))
        s.close()
        yield os.write(to, b"ef"), told(os.read(fd, 2))
        os.close(fd)
        os.close(to)

    yield in_child(lambda: list(act()))


@scene(alone=True)
def a_program_that_a_child_becomes_has_the_connection_as_its_input_and_output():
    s = opened("s3000 h e")
    r, w = os.pipe()
    if os.fork() == 0:
        os.dup2(s.fileno(), 0)
        os.dup2(w, 1)
        os.execv("/bin/cat", ["cat"])
    os.close(w)
    s.close()
    with os.fdopen(r, "rb") as text:
        yield told(text.read())
    yield os.wait()[1]
    s = opened("r5 s5 c")
    if os.fork() == 0:
        os.dup2(s.fileno(), 1)
        os.execv("/bin/echo", ["echo", "here"])
    yield os.wait()[1], told(all_of(s))


@scene(alone=True)
def a_program_that_a_child_becomes_knows_the_connections_names():
    s = opened("o")
    say = "import socket, os; s = socket.socket(fileno=0); os.write(1, repr((s.getpeername(), s.getsockname(), s.family.name, s.send(b'abc'), s.recv(3, 0x100))).encode())"
    r, w = os.pipe()
    if os.fork() == 0:
        os.dup2(s.fileno(), 0)
        os.dup2(w, 1)
        os.execv(sys.executable, [sys.executable, "-c", say])
    os.close(w)
    with os.fdopen(r) as text:
        yield text.read() == repr((s.getpeername(), s.getsockname(), "AF_INET", 3, b"abc"))
    yield os.wait()[1]


def spawned(words, given):
    """Starts a program with these pairs of descriptors, its own and this process's; returns what its end says."""
    actions = [(os.POSIX_SPAWN_DUP2, fd, own) for own, fd in given]
    return os.waitpid(os.posix_spawn(words[0], words, os.environ, file_actions=actions), 0)[1]


@scene(alone=True)
def a_program_that_is_spawned_has_the_connections_that_it_is_given():
    s = opened("s3000 h e")
    r, w = os.pipe()
    yield spawned(["/bin/cat"], [(0, s.fileno()), (1, w)])
    os.close(w)
    with os.fdopen(r, "rb") as text:
        yield told(text.read())
    s = opened("r5 s5 c")
    yield spawned(["/bin/echo", "here"], [(1, s.fileno()), (2, s.fileno())]), told(all_of(s))
    # By two descriptors of one connection, which it names as its parent does.
    s = opened("o")
    say = "import socket, sys; s = [socket.socket(fileno=n) for n in (0, 7)]; sys.exit(repr([(s.getpeername(), s.getsockname()) for s in s]) != sys.argv[1] or s[0].send(b'abc') != 3 or s[1].recv(3, 0x100) != b'abc')"
    names = repr([(s.getpeername(), s.getsockname())] * 2)
    yield spawned([sys.executable, "-c", say, names], [(0, s.fileno()), (7, os.dup(s.fileno()))])
    # And handed on by the number that the program has it by.
    yield spawned([sys.executable, "-c", say, names], [(9, s.fileno()), (7, 9), (0, 7)])
    yield s.send(b"xyz"), told(s.recv(3, socket.MSG_WAITALL))


@scene(alone=True)
def what_a_child_has_written_goes_before_what_its_parent_says_next():
    s = opened("o")
    yield in_child(lambda: s.send(b"child")), s.send(b"parent"), s.recv(11, socket.MSG_WAITALL)
    yield spawned(["/bin/echo", "-n", "child"], [(1, s.fileno())]), s.send(b"parent"), s.recv(11, socket.MSG_WAITALL)
    yield spawned(["/bin/echo", "-n", "child"], [(1, s.fileno())]), call(s.shutdown, socket.SHUT_WR), all_of(s)


def strings(them):
    return (ctypes.c_char_p * (len(them) + 1))(*map(os.fsencode, them), None)


def started(words, given):
    """The same without the interpreter's lock, so that several threads are in posix_spawn(3) at a time."""
    actions, pid = ctypes.create_string_buffer(512), ctypes.c_int()
    libc.posix_spawn_file_actions_init(actions)
    for fd, own in given:
        libc.posix_spawn_file_actions_adddup2(actions, own, fd)
    environment = strings([f"{name}={value}" for name, value in os.environ.items()])
    failed = libc.posix_spawn(ctypes.byref(pid), os.fsencode(words[0]), actions, None, strings(words), environment)
    libc.posix_spawn_file_actions_destroy(actions)
    return failed or os.waitpid(pid.value, 0)[1]


@scene(alone=True)
def threads_start_programs_with_one_connection_and_fork_meanwhile():
    s = opened("r40 s5 e s7 c")
    results = []

    def start():
        for _ in range(20):
            results.append(started(["/bin/echo", "-n", "x"], [(1, s.fileno())]))

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    children = []
    while any(thread.is_alive() for thread in threads):
        if len(children) < 20:
            children.append(os.fork())
        if children[-1] == 0:
            # Starts one itself, and lives on for a moment with what it has of its parent.
            failed = started(["/bin/true"], [])
            time.sleep(0.3)
            os._exit(failed)
        time.sleep(0.01)
    yield results == [0] * 40, told(s.recv(5, socket.MSG_WAITALL))
    # The far end hears of the end though children have lived on.
    s.shutdown(socket.SHUT_WR)
    yield told(all_of(s)), [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)


@scene(alone=True)
def a_program_that_cannot_be_spawned_takes_nothing_of_a_connection():
    s = opened("s5 o")
    wait(s)
    yield call(spawned, ["/no/such/program"], [(0, s.fileno())])
    yield told(s.recv(5, socket.MSG_WAITALL)), s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))


@scene(alone=True)
def a_grandchild_has_the_connection_of_its_childs_parent():
    s = opened("o")

    def act():
        return s.send(b"ab"), in_child(lambda: (s.send(b"cd"), told(s.recv(4, socket.MSG_WAITALL))))

    yield in_child(act)
    yield in_child(lambda: in_child(lambda: (s.send(b"cd"), told(s.recv(2, socket.MSG_WAITALL)))))


@scene(alone=True)
def a_child_has_connections_of_its_own_beside():
    s = opened("o")

    def act():
        near = opened("s20000 c")
        yield s.send(b"abc"), told(all_of(near)), told(s.recv(3, socket.MSG_WAITALL))
        other = opened("o")
        yield in_child(lambda: (other.send(b"abcd"), told(other.recv(4, socket.MSG_WAITALL)))), s.send(b"x"), told(s.recv(1))

    yield in_child(lambda: list(act()))


@scene(alone=True)
def children_of_a_listener_serve_each_a_connection():
    s = listening(7141)
    for size in (10, 100000, 10):
        ask(f"{NEAR[4]} 7141 s{size} h e c")
        c = s.accept()[0]
        if os.fork() == 0:
            s.close()
            c.sendall(all_of(c))
            os._exit(0)
        c.close()
        yield os.wait()[1]


@scene(alone=True)
def nothing_is_said_on_standard_error_where_that_is_a_connection():
    s = opened("o")
    r, w = os.pipe()
    if os.fork() == 0:
        os.dup2(s.fileno(), 2)
        # The stack has none of these, and says so.
        for name in (socket.SO_MARK, socket.SO_PRIORITY):
            call(s.setsockopt, socket.SOL_SOCKET, name, 1)
        os.write(2, b"abc")
        os.write(w, told(s.recv(3, socket.MSG_WAITALL)).encode())
        os._exit(0)
    yield os.read(r, 99), os.wait()[1]
    before = os.dup(2)
    s = opened("o")
    os.dup2(s.fileno(), 2)
    call(s.setsockopt, socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, 5000)
    os.write(2, b"abc")
    os.dup2(before, 2)
    yield told(s.recv(3, socket.MSG_WAITALL))


class Child:
    """A forked child, which does something when it is told to."""

    def __init__(self, act):
        r, self.go = os.pipe()
        self.heard, w = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.read(r, 1)
            os.write(w, repr(act()).encode())
            os._exit(0)
        os.close(r)
        os.close(w)

    def acts(self):
        os.write(self.go, b"x")

    def said(self):
        said = os.read(self.heard, 999)
        return said, os.waitpid(self.pid, 0)[1]


@scene(alone=True)
def a_parent_rests_when_the_older_of_two_children_has_ended():
    s = opened("o")
    older = Child(lambda: (s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))))
    younger = Child(lambda: (s.send(b"xyz"), told(s.recv(3, socket.MSG_WAITALL))))
    older.acts()
    yield older.said()
    began = time.process_time()
    yield wait(s, select.POLLIN, 400), time.process_time() - began < 0.2
    younger.acts()
    yield younger.said()


@scene(alone=True)
def a_child_hears_of_the_end_although_a_younger_one_lives():
    s = opened("w50 s3 w400 x")
    older = Child(lambda: (told(s.recv(3, socket.MSG_WAITALL)), call(s.recv, 1) in ("0b0", "ECONNRESET")))
    older.acts()
    wait(s)
    time.sleep(0.1)
    younger = Child(lambda: "lives")
    yield older.said()
    younger.acts()
    yield younger.said()
