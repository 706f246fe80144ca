"""Descriptors: dup(2), fcntl(2), close_range(2), and what is told of them."""
import stat
import tempfile

from scene import *


@scene(alone=True)
def dup2_onto_itself_and_others():
    s = opened("o")
    yield os.dup2(s.fileno(), s.fileno()) == s.fileno(), call(os.dup2, 97, 98), c("dup3", s.fileno(), s.fileno(), 0)
    yield c("dup3", s.fileno(), 97, os.O_CLOEXEC), fcntl.fcntl(97, fcntl.F_GETFD), c("dup3", s.fileno(), 98, 0), fcntl.fcntl(98, fcntl.F_GETFD)
    yield c("dup3", s.fileno(), 98, os.O_APPEND), c("dup2", s.fileno(), -1), c("dup2", -1, 98)
    os.write(97, b"abc")
    yield told(os.read(98, 3)), os.close(97), os.close(98), s.send(b"x"), told(s.recv(1))


@scene(alone=True)
def dup2_over_a_connection_closes_it():
    s, t = opened("e w50 c"), opened("o")
    fd = s.fileno()
    os.dup2(t.fileno(), fd)
    yield os.write(fd, b"abc"), told(t.recv(3, socket.MSG_WAITALL))
    r, w = os.pipe()
    os.dup2(r, fd)
    os.write(w, b"pipe")
    yield told(os.read(fd, 10)), t.send(b"x"), told(t.recv(1))


@scene(alone=True)
def dup2_of_a_connection_over_a_pipe():
    s = opened("o")
    r, w = os.pipe()
    os.dup2(s.fileno(), w)
    yield os.write(w, b"abc"), told(s.recv(3, socket.MSG_WAITALL)), call(os.read, r, 1)


@scene((fcntl.F_DUPFD,), (fcntl.F_DUPFD_CLOEXEC,), alone=True)
def duplicate_from_a_number_on(command):
    s = opened("o")
    fds = [fcntl.fcntl(s, command, 200) for _ in range(2)]
    yield fds, [fcntl.fcntl(fd, fcntl.F_GETFD) for fd in fds], [os.write(fd, b"a") for fd in fds], told(s.recv(2, socket.MSG_WAITALL))
    for fd in fds:
        os.close(fd)
    yield call(fcntl.fcntl, s, command, -1), call(fcntl.fcntl, s, command, 1 << 30)


@scene()
def flags_are_shared_by_duplicates():
    s = opened("w900")
    d = s.dup()
    s.setblocking(False)
    yield fcntl.fcntl(d, fcntl.F_GETFL) & os.O_NONBLOCK, call(d.recv, 1)
    fcntl.fcntl(d, fcntl.F_SETFL, 0)
    yield fcntl.fcntl(s, fcntl.F_GETFL) & os.O_NONBLOCK


@scene((0,), (1,))
def descriptor_flags(flag):
    s = opened("o")
    yield fcntl.fcntl(s, fcntl.F_SETFD, flag), fcntl.fcntl(s, fcntl.F_GETFD), os.get_inheritable(s.fileno())


@scene((os.O_APPEND,), (os.O_NONBLOCK | os.O_APPEND,), (os.O_NONBLOCK,), (os.O_RDONLY,))
def status_flags_that_are_set(flags):
    s = opened("w900")
    yield fcntl.fcntl(s, fcntl.F_SETFL, flags), fcntl.fcntl(s, fcntl.F_GETFL) & (os.O_NONBLOCK | os.O_ACCMODE)


@scene()
def commands_that_are_none():
    s = opened("o")
    yield call(fcntl.fcntl, s, 9999), c("ioctl", s.fileno(), ctypes.c_ulong(0x12345678), None), call(os.ftruncate, s.fileno(), 0)
    yield call(os.fsync, s.fileno()), call(os.lseek, s.fileno(), 0, 0), call(os.pread, s.fileno(), 1, 0), call(os.pwrite, s.fileno(), b"x", 0)
    yield stat.S_ISSOCK(os.fstat(s.fileno()).st_mode), os.readlink(f"/proc/self/fd/{s.fileno()}").startswith("socket:")


@scene((0,), (1,), (5,))
def nonblocking_by_ioctl(on):
    s = opened("w100 c")
    yield c("ioctl", s.fileno(), ctypes.c_ulong(termios.FIONBIO), ctypes.byref(ctypes.c_int(on))), s.getblocking(), fcntl.fcntl(s, fcntl.F_GETFL) & os.O_NONBLOCK
    yield call(s.recv, 1)


@scene()
def requests_that_count():
    s = opened("s100 w300 s50 w900")
    wait(s)
    yield number_of(s, termios.FIONREAD), told(s.recv(30)), number_of(s, termios.FIONREAD)
    time.sleep(0.5)
    yield number_of(s, termios.FIONREAD), told(s.recv(500)), number_of(s, termios.FIONREAD), number_of(s, 0x894B), number_of(s, 0x8905)


@scene(alone=True)
def close_range_of_connections():
    s, t = opened("o"), opened("o")
    for number, fd in ((300, s.fileno()), (301, t.fileno()), (303, s.fileno())):
        os.dup2(fd, number)
    yield c("close_range", 301, 302, 0), call(os.write, 301, b"x"), call(os.write, 300, b"a"), call(os.write, 303, b"b"), told(s.recv(2, socket.MSG_WAITALL))
    yield c("close_range", 300, 400, 4), fcntl.fcntl(300, fcntl.F_GETFD), c("close_range", 300, 400, 0), call(os.write, 303, b"x")
    yield c("close_range", 301, 300, 0), c("close_range", 300, 301, 64), t.send(b"x"), told(t.recv(1))


@scene(alone=True)
def closefrom_of_connections():
    s, t = opened("o"), opened("o")
    os.dup2(s.fileno(), 300)
    os.dup2(t.fileno(), 301)
    libc.closefrom(301)
    yield call(os.write, 301, b"x"), call(os.write, 300, b"a"), told(s.recv(1)), t.send(b"b"), told(t.recv(1))
    libc.closefrom(300)
    yield call(os.write, 300, b"x"), s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL)), told(all_of(opened("s3000 c")))


@scene(alone=True)
def closed_numbers_in_each_call():
    s = opened("o")
    s.close()
    fd = 99
    into = ctypes.create_string_buffer(100)
    for name, rest in (("recv", (into, 1, 0)), ("send", (into, 1, 0)), ("shutdown", (1,)), ("listen", (1,)), ("accept", (None, None)), ("dup", ()), ("close", ())):
        yield c(name, fd, *rest)
    yield c("getsockname", fd, into, ctypes.byref(ctypes.c_int(100))), c("setsockopt", fd, 1, 9, into, 4), c("fcntl", fd, 3), c("ioctl", fd, ctypes.c_ulong(termios.FIONREAD), into)


@scene(alone=True)
def socket_calls_on_a_pipe():
    r, w = os.pipe()
    into = ctypes.create_string_buffer(100)
    for name, rest in (("recv", (into, 1, 0)), ("send", (into, 1, 0)), ("shutdown", (1,)), ("listen", (1,)), ("accept", (None, None)), ("connect", (into, 16))):
        yield c(name, r, *rest)


@scene(alone=True)
def numbers_are_used_again():
    s = opened("o")
    fd = s.fileno()
    s.close()
    t = opened("o")
    yield t.fileno() == fd, t.send(b"abc"), told(t.recv(3, socket.MSG_WAITALL))
    t.close()
    r, _w = os.pipe()
    yield r == fd


@scene()
def detached_and_made_again():
    s = opened("o")
    t = socket.socket(fileno=s.detach())
    yield t.family.name, t.type.name, t.proto, t.send(b"abc"), told(t.recv(3, socket.MSG_WAITALL))


@scene()
def as_a_file():
    s = opened("s20 w50 s5 c")
    f = s.makefile("rb")
    yield told(f.read(10)), told(f.read())
    g = opened("o").makefile("rwb", buffering=0)
    yield g.write(b"abc"), told(g.read(3))


@scene(("pipe",), ("closed",), ("socket",), ("write only",), ("directory",))
def sendfile_from(kind):
    s = opened("o", blocking=False)
    r, w = os.pipe()
    os.write(w, b"abc")
    source = {"pipe": lambda: r, "closed": lambda: 9999, "socket": lambda: opened("o").detach(), "write only": lambda: os.open("/dev/null", os.O_WRONLY),
              "directory": lambda: os.open("/", os.O_RDONLY)}[kind]()
    yield c("sendfile", s.fileno(), source, None, 3), c("sendfile", s.fileno(), source, ctypes.byref(ctypes.c_long(0)), 3)
    for fd in (r, w, source) if kind not in ("closed", "pipe") else (r, w):
        os.close(fd)


@scene()
def sendfile_with_offsets():
    import tempfile

    s = opened("o")
    with tempfile.TemporaryFile() as f:
        f.write(bytes(i % 251 for i in range(1000)))
        f.flush()
        for start, count in ((0, 10), (990, 100), (1000, 5), (2000, 5), (-1, 5), (0, 0)):
            offset = ctypes.c_long(start)
            sent = c("sendfile", s.fileno(), f.fileno(), ctypes.byref(offset), ctypes.c_size_t(count))
            yield sent, offset.value, told(s.recv(sent, socket.MSG_WAITALL)) if isinstance(sent, int) and sent else "-"
        os.lseek(f.fileno(), 500, 0)
        yield c("sendfile", s.fileno(), f.fileno(), None, ctypes.c_size_t(100)), os.lseek(f.fileno(), 0, 1), told(s.recv(100, socket.MSG_WAITALL))


@scene()
def sendfile_from_a_device():
    s = opened("o")
    with open("/dev/zero", "rb", buffering=0) as f:
        yield c("sendfile", s.fileno(), f.fileno(), None, ctypes.c_size_t(100)), told(s.recv(100, socket.MSG_WAITALL))


READ, WRITE, CLOSE, POLL, FCNTL, SENDTO, RECVFROM, ACCEPT4, EPOLL_WAIT, EPOLL_CTL, DUP = 0, 1, 3, 7, 72, 44, 45, 288, 232, 233, 32


@scene()
def calls_by_number():
    """Through syscall(2) of the C library."""
    s = opened("o w100 c")
    fd, room = s.fileno(), ctypes.create_string_buffer(100)
    yield c("syscall", WRITE, fd, b"abc", 3), c("syscall", SENDTO, fd, b"defg", 4, 0, None, 0)
    yield told(s.recv(7, socket.MSG_WAITALL | socket.MSG_PEEK)), c("syscall", READ, fd, room, 3), room.value
    yield c("syscall", RECVFROM, fd, room, 100, socket.MSG_DONTWAIT, None, None), c("syscall", RECVFROM, fd, room, 9, socket.MSG_DONTWAIT, None, None)
    p = select.epoll()
    event = struct.pack("=IQ", IN, 5)
    yield c("syscall", EPOLL_CTL, p.fileno(), 1, fd, event), c("syscall", EPOLL_CTL, p.fileno(), 1, fd, event)
    s.send(b"x")
    yield c("syscall", EPOLL_WAIT, p.fileno(), room, 5, 3000), struct.unpack("=IQ", room.raw[:12])
    asked = ctypes.create_string_buffer(struct.pack("ihh", fd, IN, 0))
    yield c("syscall", POLL, asked, 1, 3000), struct.unpack("ihh", asked.raw[:8])[1:]
    copy = c("syscall", DUP, fd)
    yield c("syscall", FCNTL, copy, 4, os.O_NONBLOCK), fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK == os.O_NONBLOCK
    yield c("syscall", CLOSE, copy), call(os.write, copy, b"x"), c("syscall", 9999)


@scene(alone=True)
def numbers_that_are_closed_by_number_are_free():
    file = tempfile.TemporaryFile()
    fd = opened("e c").detach()
    yield c("syscall", CLOSE, fd), c("syscall", CLOSE, fd), fcntl.fcntl(file, fcntl.F_DUPFD, fd) == fd
    yield call(os.write, fd, b"abc"), call(os.lseek, fd, 0, 0), call(os.read, fd, 9), call(os.close, fd)
