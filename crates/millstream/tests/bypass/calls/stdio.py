"""Streams of stdio over connections."""
import tempfile

from scene import *

for name in ("fdopen", "fopen"):
    getattr(libc, name).restype = ctypes.c_void_p
ROOM = 200


def stream(fd, mode):
    return ctypes.c_void_p(libc.fdopen(fd, mode))


def line_of_stream(f, room):
    libc.fgets.restype = ctypes.c_char_p
    return told(libc.fgets(room, ROOM, f))


@scene(*BOTH)
def closing_a_stream_ends_the_connection(version):
    near = listening(7181 + version, version)
    near.settimeout(3)
    s = opened(f"e k {NEAR[version]} {7181 + version} s3", version)
    yield libc.fclose(stream(s.detach(), b"r+"))
    yield call(lambda: told(all_of(near.accept()[0])))


@scene((b"r",), (b"w",), (b"r+",), (b"w+b",), (b"a",), (b"x",), (b"",))
def streams_of_modes(mode):
    s = opened("s5 o")
    fd, room = s.detach(), ctypes.create_string_buffer(ROOM)
    f = stream(fd, mode)
    yield bool(f)
    if f:
        yield libc.fileno(f) == fd, libc.fread(room, 1, 5, f), libc.ferror(f)
        libc.clearerr(f)
        yield libc.fputs(b"abc", f) >= 0, libc.fflush(f), libc.ferror(f), libc.fclose(f), call(os.write, fd, b"x")


@scene()
def lines_go_both_ways():
    s = opened("o")
    room = ctypes.create_string_buffer(ROOM)
    r, w = stream(s.dup().detach(), b"r"), stream(s.detach(), b"w")
    for number in range(3):
        yield libc.fprintf(w, b"%s %d %5.2f\n", b"line", number, ctypes.c_double(number / 3)), libc.fflush(w), line_of_stream(r, room), room.value
    yield libc.fputs(b"last", w) >= 0, libc.fclose(w), libc.fclose(r)


@scene()
def a_stream_is_read_to_its_end():
    f = stream(opened("s20 w50 s5 c").detach(), b"r")
    room = ctypes.create_string_buffer(ROOM)
    yield libc.fread(room, 1, 10, f), libc.feof(f), libc.fread(room, 1, ROOM, f), libc.feof(f), libc.ferror(f), libc.fgetc(f), libc.fclose(f)


@scene()
def a_stream_that_would_wait():
    f = stream(opened("w300 s5 w900", blocking=False).detach(), b"r")
    room = ctypes.create_string_buffer(ROOM)
    yield c("fgetc", f), libc.ferror(f), libc.feof(f)
    libc.clearerr(f)
    time.sleep(0.6)
    yield libc.fread(room, 1, ROOM, f), libc.ferror(f), libc.fclose(f)


@scene()
def a_stream_has_no_position():
    f = stream(opened("s9 o").detach(), b"r+")
    yield c("fseek", f, ctypes.c_long(3), 0), c("ftell", f), libc.fgetc(f), libc.fclose(f)


@scene()
def printed_to_a_descriptor():
    s = opened("o")
    yield c("dprintf", s.fileno(), b"%s-%d-%c-%ld-%s-%d", b"one", 2, 51, ctypes.c_long(1 << 40), b"five", 6), s.recv(30)
    floats = [ctypes.c_double(part / 4) for part in range(10)]
    yield c("dprintf", s.fileno(), b"%.2f " * 10, *floats), s.recv(60)
    yield c("__dprintf_chk", s.fileno(), 1, b"%d %s %.1f %d %d %d", 1, b"two", ctypes.c_double(3), 4, 5, 6), s.recv(60)
    yield c("dprintf", s.fileno(), b""), c("dprintf", 9999, b"x")


@scene()
def printed_to_a_pipe():
    r, w = os.pipe()
    yield c("dprintf", w, b"%d %.1f", 1, ctypes.c_double(2)), os.read(r, 30), os.close(r), os.close(w)


@scene(alone=True)
def what_a_stream_holds_back_is_written_at_exit():
    """While a thread waits in another one."""
    near = listening(7189)
    near.settimeout(3)
    script = f"""
import ctypes, signal, socket, threading, time
signal.alarm(5)
c = ctypes.CDLL(None)
c.fdopen.restype = ctypes.c_void_p
silent = socket.create_connection(("{FAR[4]}", 5001))
silent.sendall(b"w9000\\n")
read = ctypes.c_void_p(c.fdopen(silent.detach(), b"r"))
threading.Thread(target=c.fgetc, args=(read,), daemon=True).start()
time.sleep(0.2)
s = socket.create_connection(("{FAR[4]}", 5001))
s.sendall(b"r4 k {NEAR[4]} 7189 s7 w100\\n")
c.fputs(b"last", ctypes.c_void_p(c.fdopen(s.detach(), b"w")))
c.exit(0)
"""
    yield os.spawnlp(os.P_WAIT, "python3", "python3", "-c", script)
    yield call(lambda: told(all_of(near.accept()[0])))


@scene(("pipe",), ("file",), ("stream",), ("duplicate",), ("socket",), alone=True)
def numbers_that_the_c_library_closes_are_others(kind):
    near = listening(7190)
    near.settimeout(3)
    file = tempfile.TemporaryFile()
    fd = opened(f"e k {NEAR[4]} 7190 s3").detach()
    libc.__close(fd)
    makes = {
        "pipe": lambda: os.pipe()[0],
        "file": lambda: os.open("/dev/zero", os.O_RDONLY),
        "stream": lambda: libc.fileno(ctypes.c_void_p(libc.fopen(b"/dev/zero", b"r"))),
        "duplicate": lambda: os.dup(file.fileno()),
        "socket": lambda: socket.socket(socket.AF_UNIX).detach(),
    }
    made = makes[kind]()
    yield made == fd, "-" if kind == "pipe" else call(os.read, made, 9), os.close(made)
    yield call(lambda: told(all_of(near.accept()[0])))
