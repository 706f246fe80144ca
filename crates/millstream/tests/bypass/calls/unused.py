"""Sockets that are not connected yet: what is said of them, and what becomes of them otherwise."""
import stat
import subprocess
import sys

from scene import *

NODELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY)


def status_of(s):
    return fcntl.fcntl(s, fcntl.F_GETFL) & ~os.O_LARGEFILE


@scene(*BOTH)
def what_is_said_before_holds_afterwards(v):
    s = fresh(v)
    yield status_of(s), fcntl.fcntl(s, fcntl.F_GETFD)
    fcntl.fcntl(s, fcntl.F_SETFL, os.O_NONBLOCK)
    s.setsockopt(*NODELAY, 1)
    yield status_of(s), call(fcntl.fcntl, s, fcntl.F_SETFD, 0), fcntl.fcntl(s, fcntl.F_GETFD)
    yield s.connect_ex((FAR[v], 5001)), wait(s, select.POLLOUT)
    yield status_of(s), s.getsockopt(*NODELAY), fcntl.fcntl(s, fcntl.F_GETFD)


@scene(*BOTH)
def what_is_said_before_is_there_when_it_is_asked_for(v):
    s = fresh(v)
    fcntl.ioctl(s, 0x5421, struct.pack("i", 1))
    s.setsockopt(*NODELAY, 1)
    yield s.getsockopt(*NODELAY), status_of(s), s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE)
    s.setsockopt(*NODELAY, 0)
    yield s.getsockopt(*NODELAY), s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == family(v)
    yield s.connect_ex((FAR[v], 5001)), wait(s, select.POLLOUT), s.getsockopt(*NODELAY)


@scene()
def waiting_and_not_by_turns():
    s = fresh()
    for on in (1, 0, 1, 0):
        fcntl.ioctl(s, 0x5421, struct.pack("i", on))
        yield status_of(s)
    yield call(s.connect, (FAR[4], 5001)), status_of(s)


@scene(*BOTH)
def refused_as_an_unconnected_socket(v):
    s = fresh(v)
    yield call(s.recv, 1), call(s.send, b"x"), call(s.shutdown, socket.SHUT_RDWR), call(s.accept), call(s.getpeername)
    yield s.getsockname()[:2], number_of(s, termios.FIONREAD), call(os.read, s.fileno(), 1)
    yield call(os.lseek, s.fileno(), 0, 0), stat.S_ISSOCK(os.fstat(s.fileno()).st_mode)


@scene()
def options_with_wrong_values():
    s = fresh()
    yield c("setsockopt", s.fileno(), *NODELAY, None, 4), c("setsockopt", s.fileno(), *NODELAY, b"\0", 1)
    yield c("setsockopt", s.fileno(), *NODELAY, b"\7\0\0\0", 4), s.getsockopt(*NODELAY)
    yield c("setsockopt", s.fileno(), socket.IPPROTO_TCP, 999, b"\7\0\0\0", 4)


@scene()
def a_duplicate_is_the_same_socket():
    s = fresh()
    s.setblocking(False)
    d = s.dup()
    yield status_of(d)
    s.setblocking(True)
    d.setsockopt(*NODELAY, 1)
    yield status_of(d) == status_of(s), s.getsockopt(*NODELAY), call(d.bind, (NEAR[4], 0)), s.getsockname() == d.getsockname()


@scene(alone=True)
def another_socket_takes_its_number():
    s, t = fresh(), opened("s5 c")
    number = s.fileno()
    os.dup2(t.fileno(), number)
    yield told(all_of(s)), call(t.getpeername)


@scene()
def listens_after_all():
    s = fresh()
    s.setsockopt(*NODELAY, 1)
    yield call(s.listen, 5), s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), s.getsockopt(*NODELAY)


@scene()
def connects_over_loopback():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        s = fresh()
        s.setblocking(False)
        yield s.connect_ex(listener.getsockname()) in (0, errno.EINPROGRESS), wait(s, select.POLLOUT)
        peer = listener.accept()[0]
        yield call(s.send, b"abc"), call(peer.recv, 3), status_of(s)


@scene(alone=True)
def another_program_gets_it():
    s = fresh()
    s.setblocking(False)
    t = fresh()
    script = "import os, socket, sys; s = socket.socket(fileno=int(sys.argv[1])); print(s.type == socket.SOCK_STREAM, s.getsockname(), s.listen(1), s.getsockopt(1, 30))"
    run = subprocess.run([sys.executable, "-c", script, str(s.fileno())], pass_fds=[s.fileno()], capture_output=True, text=True)
    yield run.stdout.strip(), run.returncode
    # It listens: the two had one socket.
    yield s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), t.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


@scene(alone=True)
def many_of_them_are_closed():
    numbers = [fresh().detach() for _ in range(40)]
    for number in numbers:
        os.close(number)
    yield call(os.fstat, numbers[0]), call(fresh().connect, (FAR[4], 5001))


@scene((socket.SOCK_STREAM, 0), (socket.SOCK_STREAM, 6), (socket.SOCK_DGRAM, 0), (socket.SOCK_STREAM, 17), (99, 0))
def kinds_of_sockets(kind, protocol):
    def made():
        with socket.socket(socket.AF_INET, kind, protocol) as s:
            return s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL)

    yield call(made)


@scene(*BOTH)
def bound_after_a_refusal(v):
    s, other = fresh(v), fresh(v)
    yield call(s.connect, (FAR[v], 9)), call(other.connect, (FAR[v], 9))
    yield call(s.bind, (NEAR[v], 0)), s.getsockname()[0] == NEAR[v], other.getsockname()[1] != s.getsockname()[1]
    port = s.getsockname()[1]
    yield call(s.connect, (FAR[v], 5001)), s.getsockname()[1] == port
    yield call(other.bind, (NEAR[v], 0)), other.getsockname()[1] != port, call(other.connect, (FAR[v], 5001))


@scene(alone=True)
def used_while_no_more_descriptors_may_be_had():
    import resource

    with socket.create_server(("127.0.0.1", 0)) as listener:
        s, t = fresh(), fresh()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        spent = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
        try:
            while True:
                spent.append(os.dup(0))
        except OSError as error:
            yield errno.errorcode[error.errno]
        results = call(s.connect, listener.getsockname()), call(t.bind, ("127.0.0.1", 0)), call(t.listen, 1)
        for number in spent:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        yield results, s.getpeername() == listener.getsockname(), call(fresh().getpeername)
        yield t.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), fresh().getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
