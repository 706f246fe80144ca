"""splice(2) between pipes and connections."""
import os
import socket
import threading

from scene import all_of, call, opened, scene, told, wait

NONBLOCK, MORE = 2, 4


def piped(data=b""):
    r, w = os.pipe()
    os.write(w, data)
    return r, w


def splice(*arguments):
    return call(os.splice, *arguments)


@scene((1,), (1000,), (60000,))
def a_pipe_into_a_connection(count):
    s = opened("o")
    r, w = piped(bytes(i % 241 for i in range(count)))
    yield splice(r, s.fileno(), count + 5), splice(r, s.fileno(), 10, None, None, NONBLOCK)
    os.close(w)
    yield splice(r, s.fileno(), 10)
    s.shutdown(socket.SHUT_WR)
    yield told(all_of(s))
    os.close(r)


@scene((1,), (1000,), (50000,))
def a_connection_into_a_pipe(count):
    s = opened(f"s{count} c")
    r, w = piped()
    data = b""
    while moved := os.splice(s.fileno(), w, 70000):
        data += os.read(r, moved)
    yield told(data), splice(s.fileno(), w, 10), call(s.recv, 10)
    os.close(r)
    os.close(w)


@scene()
def through_a_pipe_and_back():
    s = opened("o")
    count = 3000000
    got = bytearray()

    def read():
        r, w = piped()
        while moved := os.splice(s.fileno(), w, 65536):
            got.extend(os.read(r, moved))
        os.close(r)
        os.close(w)

    reader = threading.Thread(target=read)
    reader.start()
    r, w = piped()
    data = bytes(i % 239 for i in range(60000))
    for _ in range(count // len(data)):
        os.write(w, data)
        left = len(data)
        while left:
            left -= os.splice(r, s.fileno(), left)
    s.shutdown(socket.SHUT_WR)
    reader.join()
    yield told(got)


@scene()
def without_waiting():
    s = opened("w100 s10 e c", blocking=False)
    r, w = piped()
    yield splice(s.fileno(), w, 10), splice(r, s.fileno(), 10, None, None, NONBLOCK)
    yield wait(s), splice(s.fileno(), w, 4), os.read(r, 10), splice(s.fileno(), w, 100), os.read(r, 10)
    yield splice(s.fileno(), w, 10)


@scene()
def a_full_pipe_takes_a_part():
    s = opened("s100000 e c")
    r, w = piped()
    os.set_blocking(w, False)
    os.write(w, bytes(65536 - 4096))
    wait(s)
    moved = splice(s.fileno(), w, 50000, None, None, NONBLOCK)
    yield moved == "EAGAIN" or 0 < moved <= 4096
    yield splice(s.fileno(), w, 50000, None, None, NONBLOCK)
    left = len(os.read(r, 70000))
    yield left - 61440 == (0 if moved == "EAGAIN" else moved)
    s.shutdown(socket.SHUT_WR)
    yield len(all_of(s)) + left - 61440


@scene()
def what_is_refused():
    s = opened("w300 c")
    other = opened("w300 c")
    r, w = piped(b"abc")
    with open("/etc/passwd", "rb") as f:
        yield splice(f.fileno(), s.fileno(), 10), splice(s.fileno(), f.fileno(), 10)
    yield splice(s.fileno(), other.fileno(), 10)
    yield splice(r, s.fileno(), 10, None, 0), splice(s.fileno(), w, 10, 0)
    yield splice(r, s.fileno(), 0)
    s.shutdown(socket.SHUT_WR)
    yield splice(r, s.fileno(), 10), os.read(r, 10)


@scene()
def a_pipe_that_none_reads():
    s = opened("s10 e c")
    r, w = piped()
    os.close(r)
    wait(s)
    yield splice(s.fileno(), w, 10), told(s.recv(100))
