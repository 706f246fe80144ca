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
