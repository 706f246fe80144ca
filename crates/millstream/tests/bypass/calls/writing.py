"""Writing."""
import tempfile

from scene import *


@scene(*[(n, v) for n in (1, 1448, 30000, 1000000) for v in (4, 6)])
def echo(n, v):
    s = opened("o", v)
    said = bytes(i % 256 for i in range(n))
    threading.Thread(target=lambda: (s.sendall(said), s.shutdown(1))).start()
    yield all_of(s) == said


@scene()
def write_pieces():
    s = opened("o")
    yield os.writev(s.fileno(), [b"ab", b"", b"cde"]), s.recv(5, socket.MSG_WAITALL)
    yield s.sendmsg([b"12", b"345"]), s.recv(5, socket.MSG_WAITALL)


@scene()
def write_to_a_connected_address():
    s = opened("o")
    yield call(s.sendto, b"x", (FAR[4], 5001))


@scene()
def write_with_more():
    s = opened("o")
    yield s.send(b"ab", socket.MSG_MORE), s.send(b"cd"), s.recv(4, socket.MSG_WAITALL)


@scene()
def write_until_full_and_empty():
    s = opened("w2500 e", blocking=False)
    total = 0
    # Until the far end has taken what it has room for, too.
    added = 1
    while added:
        added = 0
        try:
            while True:
                added += s.send(b"x" * 100000)
        except BlockingIOError:
            pass
        total += added
        time.sleep(0.15)
    yield total > 100000, wait(s, select.POLLOUT, 0), call(s.send, b"x")
    yield wait(s, select.POLLOUT, 5000)


@scene()
def write_times_out():
    s = opened("w2000")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 50000))
    result = None
    for _ in range(1000):
        result = call(s.send, b"x" * 100000)
        if isinstance(result, str):
            break
    yield result


@scene()
def write_after_the_far_end_closed():
    s = opened("c")
    wait(s, select.POLLRDHUP)
    yield call(s.send, b"x")
    wait(s, select.POLLHUP)
    yield call(s.send, b"x"), call(s.send, b"x")
    yield call(s.recv, 1)


@scene()
def write_after_shutdown():
    s = opened("o")
    yield call(s.shutdown, socket.SHUT_WR), call(s.send, b"x")
    wait(s, select.POLLHUP)
    yield call(s.shutdown, socket.SHUT_WR)


@scene(alone=True)
def sigpipe_is_raised():
    s = opened("o")
    raised = []
    before = signal.signal(signal.SIGPIPE, lambda *_: raised.append(1))
    s.shutdown(socket.SHUT_WR)
    yield call(os.write, s.fileno(), b"x"), len(raised)
    yield call(s.send, b"x", socket.MSG_NOSIGNAL), len(raised)
    signal.signal(signal.SIGPIPE, before)


def file_of(count):
    """A file, at its beginning."""
    f = tempfile.TemporaryFile()
    f.write(bytes(i % 253 for i in range(count)))
    f.flush()
    os.lseek(f.fileno(), 0, os.SEEK_SET)
    return f


@scene((0, 100), (50, 100), (0, 1000000), (900000, 200000))
def send_files(offset, count):
    with file_of(1000000) as f:
        s = opened("o")
        sent = 0
        got = []
        reader = threading.Thread(target=lambda: got.append(all_of(s)))
        reader.start()
        while sent < count:
            n = os.sendfile(s.fileno(), f.fileno(), offset + sent, count - sent)
            if n == 0:
                break
            sent += n
        s.shutdown(1)
        reader.join()
        yield sent, told(got[0]), os.lseek(f.fileno(), 0, os.SEEK_CUR)


@scene(*((v, how, blocking) for v in (4, 6) for how in ("sendto", "sendmsg") for blocking in (True, False)))
def written_while_it_connects(version, how, blocking):
    s = fresh(version)
    s.setblocking(blocking)
    far, flags = (FAR[version], 5001), socket.MSG_FASTOPEN
    send = {"sendto": lambda: s.sendto(b"o\n", flags, far), "sendmsg": lambda: s.sendmsg([b"o", b"\n"], [], flags, far)}[how]
    yield call(send)
    if not blocking:
        yield wait(s, OUT), call(s.send, b"o\n")
    s.setblocking(True)
    yield s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL)), call(send), call(s.send, b"x", flags)


@scene()
def written_while_it_can_not_connect():
    s = fresh()
    yield call(s.sendto, b"x", socket.MSG_FASTOPEN, (FAR[4], 5999)), call(s.getpeername)
    yield call(fresh().sendto, b"x", socket.MSG_FASTOPEN, ("127.0.0.1", 5999))
    t = opened("o")
    unspecified = ctypes.create_string_buffer(16)
    yield c("sendto", s.fileno(), b"x", 1, socket.MSG_FASTOPEN, unspecified, 16), c("sendto", t.fileno(), b"x", 1, socket.MSG_FASTOPEN, unspecified, 16)


@scene((0,), (1,), (2,), (8,), (16,), (8 | 2,), (1 << 20,))
def read_and_written_without_position(flags):
    s = opened("o")
    bytes_ = ctypes.create_string_buffer(b"abcdef", 6)
    pieces = (ctypes.c_void_p * 4)(ctypes.addressof(bytes_), 4, ctypes.addressof(bytes_) + 4, 2)
    yield c("preadv2", s.fileno(), pieces, 2, ctypes.c_long(-1), 8), c("pwritev2", s.fileno(), pieces, 2, ctypes.c_long(-1), flags)
    s.send(b"ABCDEF")
    wait(s)
    time.sleep(0.05)
    yield c("preadv2", s.fileno(), pieces, 2, ctypes.c_long(-1), flags), bytes_.raw
    yield c("preadv2", s.fileno(), pieces, 2, ctypes.c_long(0), flags), c("pwritev2", s.fileno(), pieces, 2, ctypes.c_long(5), flags)
    yield c("preadv64v2", s.fileno(), pieces, 1025, ctypes.c_long(-1), 0), c("pwritev64v2", s.fileno(), pieces, -1, ctypes.c_long(-1), 0)
    yield c("preadv2", s.fileno(), pieces, 2, ctypes.c_long(-2), flags)
