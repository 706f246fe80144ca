"""Connections that go to another process by a message (SCM_RIGHTS)."""
from scene import *


class Other:
    """A process that was there before, and does with a connection what it is told."""

    def __init__(self):
        self.near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            self.near.close()
            self.live(far)
            os._exit(0)
        far.close()

    def live(self, far):
        while True:
            said, numbers, _, _ = socket.recv_fds(far, 9999, 9)
            if not said:
                return
            try:
                them = [socket.socket(fileno=number) for number in numbers]
                answer = repr(eval(said, {**globals(), "them": them, "far": far}))
            except Exception as error:
                answer = repr(error)
            for it in them:
                it.close()
            far.send(answer.encode())

    def does(self, what, *them):
        """What comes of an expression over `them`, these connections."""
        socket.send_fds(self.near, [what.encode()], [it.fileno() for it in them])
        return self.near.recv(9999)

    def end(self):
        self.near.close()
        return os.waitpid(self.pid, 0)[1]


def names(s):
    return s.getpeername(), s.getsockname()


@scene((4,), (6,), alone=True)
def another_process_speaks_for_this_one(version):
    other = Other()
    s = opened("o", version)
    yield other.does("them[0].send(b'abc'), told(them[0].recv(3, socket.MSG_WAITALL))", s)
    yield other.does(f"[(it.getpeername(), it.getsockname()) for it in them] == {[names(s)] * 2!r}, them[1].family.name", s, s)
    yield s.send(b"xyz"), told(s.recv(3, socket.MSG_WAITALL)), other.end()


@scene(alone=True)
def a_connection_that_is_closed_here_goes_on_there():
    other = Other()
    s = opened("o")
    socket.send_fds(other.near, [b"far.recv(9), them[0].send(b'abc'), told(them[0].recv(3, socket.MSG_WAITALL))"], [s.fileno()])
    s.close()
    other.near.send(b"closed")
    yield other.near.recv(9999), other.end()


@scene((1,), (100000,), (3000000,), alone=True)
def all_bytes_go_there_and_back(size):
    other = Other()
    s = opened(f"r{size} s{size} c")
    yield other.does(f"call(them[0].sendall, b'x' * {size}), told(all_of(them[0])), call(them[0].recv, 1)", s)
    yield call(s.recv, 1), other.end()


@scene(alone=True)
def a_connection_comes_back():
    other = Other()
    s = opened("o")
    peer = repr(names(s))
    socket.send_fds(other.near, [b"socket.send_fds(far, [b'back'], [them[0].fileno()])"], [s.fileno()])
    s.close()
    said, (number,), _, _ = socket.recv_fds(other.near, 99, 1)
    yield said, other.near.recv(99)
    back = socket.socket(fileno=number)
    yield repr(names(back)) == peer, back.send(b"abc"), told(back.recv(3, socket.MSG_WAITALL)), other.end()


@scene(alone=True)
def one_that_a_child_has_of_its_parent_goes_on_to_another_process():
    other = Other()
    s = opened("o")
    r, w = os.pipe()
    if os.fork() == 0:
        s.send(b"a")
        os.write(w, repr((told(s.recv(1)), other.does(f"names(them[0]) == {names(s)!r}, them[0].send(b'abc'), told(them[0].recv(3, socket.MSG_WAITALL))", s))).encode())
        os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as text:
        yield text.read()
    yield os.wait()[1], other.end()


@scene(alone=True)
def what_waits_is_told_there():
    other = Other()
    s = opened("w100 s7 w200 c")
    yield other.does("wait(them[0]), told(them[0].recv(99)), wait(them[0]), them[0].recv(9)", s), other.end()
    s = opened("w100 s7 c", blocking=False)
    other = Other()
    yield other.does("them[0].getblocking(), call(them[0].recv, 1)", s), other.end()


@scene(alone=True)
def many_one_after_the_other():
    other = Other()
    for _ in range(200):
        s = opened("o")
        said = other.does("names(them[0]), them[0].send(b'abc'), told(them[0].recv(3, socket.MSG_WAITALL))", s)
        if said != repr((names(s), 3, told(b"abc"))).encode():
            yield said
        s.close()
    yield other.end()


@scene(alone=True)
def a_message_for_which_there_is_no_room_passes_nothing():
    near, far = socket.socketpair()
    s = opened("o")
    near.setblocking(False)
    sent = 0
    while call(socket.send_fds, near, [b"x" * 9999], [s.fileno()]) == 9999:
        sent += 1
    yield sent > 1, call(socket.send_fds, near, [b"x"], [s.fileno()])
    far.close()
    yield call(socket.send_fds, near, [b"x"], [s.fileno()]), s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))
    yield call(socket.send_fds, near, [b"x"], [s.fileno(), 999])


@scene(alone=True)
def one_that_the_other_process_does_not_take_has_all_its_bytes():
    s = opened("w50 s9 o")
    for turn in range(3):
        other = Other()
        # It is told there that bytes have come, and closed unread.
        yield other.does("bool(wait(them[0]))", s), other.end()
    yield told(s.recv(9, socket.MSG_WAITALL)), s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))
    s = opened("s9 r3 s3 e")
    other = Other()
    yield other.does("told(them[0].recv(9, socket.MSG_WAITALL)), them[0].send(b'xyz')", s), told(s.recv(3, socket.MSG_WAITALL)), other.end()


@scene(alone=True)
def what_is_not_connected_or_has_ended_is_passed_as_it_is():
    other = Other()
    s = opened("r1 x")
    s.send(b"x")
    wait(s)
    yield other.does("call(them[0].recv, 9) in ('0b0', 'ECONNRESET'), len(them)", s), other.end()


@scene(alone=True)
def several_messages_at_a_time_pass_connections():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s = opened("o")
    control = struct.pack("@Qiii", 20, socket.SOL_SOCKET, socket.SCM_RIGHTS, s.fileno()) + bytes(4)
    text, rights = ctypes.create_string_buffer(b"x", 1), ctypes.create_string_buffer(control, 24)
    piece = struct.pack("@PN", ctypes.addressof(text), 1)
    pieces = ctypes.create_string_buffer(piece, 16)
    header = struct.pack("@PIxxxxPNPNixxxx", 0, 0, ctypes.addressof(pieces), 1, ctypes.addressof(rights), 24, 0) + bytes(8)
    headers = ctypes.create_string_buffer(header * 2, 128)
    yield libc.sendmmsg(near.fileno(), headers, 2, 0)
    for _ in range(2):
        said, (number,), _, _ = socket.recv_fds(far, 9, 1)
        it = socket.socket(fileno=number)
        yield said, it.getpeername() == s.getpeername(), it.send(b"abc"), told(it.recv(3, socket.MSG_WAITALL))
        it.close()
