"""Reading."""
from scene import *


@scene(*[(n, v) for n in (1, 100, 1448, 5000, 100000) for v in (4, 6)])
def read_to_the_end(n, v):
    s = opened(f"s{n} c", v)
    yield told(all_of(s)), call(s.recv, 10), call(s.recv, 10)


@scene(*[(f,) for f in (0, socket.MSG_PEEK, socket.MSG_DONTWAIT, socket.MSG_WAITALL, socket.MSG_PEEK | socket.MSG_DONTWAIT)])
def read_with_flags(flags):
    s = opened("s100 w50 s100 c")
    wait(s)
    yield call(s.recv, 60, flags), call(s.recv, 60, flags)
    yield told(all_of(s))


@scene((150,), (200,), (300,))
def wait_for_all(n):
    s = opened("s100 w50 s100 c")
    yield call(s.recv, n, socket.MSG_WAITALL), call(s.recv, n, socket.MSG_WAITALL)


@scene()
def read_nothing_nonblocking():
    s = opened("w200 s5 c", blocking=False)
    yield call(s.recv, 10), wait(s), call(s.recv, 10)


@scene((1,), (50,))
def read_times_out(ms):
    s = opened("w400 s5 c")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, ms * 1000))
    began = time.monotonic()
    yield call(s.recv, 10)
    yield ms / 1000 <= time.monotonic() - began < 0.3
    yield struct.unpack("ll", s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16))[1] >= ms * 1000


@scene()
def read_after_reset():
    s = opened("s5 w20 x")
    wait(s, select.POLLHUP)
    yield call(s.recv, 3), call(s.recv, 10), call(s.recv, 10)


@scene()
def read_zero_bytes():
    s = opened("s5 w100 c")
    wait(s)
    yield call(s.recv, 0), call(s.recv, 10)


@scene(((1, 2, 3),), ((100, 1, 50),), ((0, 5, 0),))
def read_into_pieces(sizes):
    s = opened("s200 w50 c")
    wait(s)
    pieces = [bytearray(n) for n in sizes]
    yield os.readv(s.fileno(), pieces), [told(p) for p in pieces]


@scene()
def read_messages():
    s = opened("s200 w50 c")
    wait(s)
    a, b = bytearray(30), bytearray(40)
    count, ancillary, flags, _ = s.recvmsg_into([a, b])
    yield count, told(a), told(b), ancillary, flags
    data, address = s.recvfrom(10)
    yield told(data), address


@scene()
def unread_count():
    s = opened("s123 w100 c")
    wait(s)
    yield struct.unpack("i", fcntl.ioctl(s, termios.FIONREAD, b"    "))[0]
    s.recv(23)
    yield struct.unpack("i", fcntl.ioctl(s, termios.FIONREAD, b"    "))[0]


@scene((10,), (300,))
def low_water(n):
    s = opened("s100 w400 s250 w100 c")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, n)
    time.sleep(0.05)
    yield wait(s, select.POLLIN, 0), wait(s, select.POLLIN, 1000)
