"""What scenes of socket calls are made of.

A scene is a generator. What it yields is what calls returned, or the names of their errors; data are told by length and sum.
"""
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time

NEAR = {4: "10.50.0.1", 6: "fd50::1"}
FAR = {4: "10.50.0.2", 6: "fd50::2"}
# Where nothing answers.
SILENT = 5002
IN, OUT, ET, ONE, RDHUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLET, select.EPOLLONESHOT, select.EPOLLRDHUP
SCENES = []


def scene(*variants, alone=False, together=False):
    """Registers a scene, once for each tuple of arguments.

    Others run at the same time in other threads, but for those that are alone: they have signals, forks, or fixed or closed numbers.
    Variants that are together run one after the other: they have the same port.
    """

    def register(run):
        SCENES.append((run, variants or [()], alone, together))
        return run

    return register


BOTH = [(4,), (6,)]


def told(value):
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)}b{sum(value) % 1000}"
    return value


def call(function, *arguments):
    try:
        return told(function(*arguments))
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def family(version):
    return socket.AF_INET if version == 4 else socket.AF_INET6


def fresh(version=4):
    return socket.socket(family(version), socket.SOCK_STREAM)


def opened(words, version=4, blocking=True):
    """A connection whose far end does what the words say."""
    s = fresh(version)
    s.connect((FAR[version], 5001))
    s.sendall(words.encode() + b"\n")
    s.setblocking(blocking)
    return s


def listening(port, version=4, backlog=10):
    s = fresh(version)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((NEAR[version], port))
    s.listen(backlog)
    return s


def ask(words, version=4):
    """Has the far end connect to this one."""
    opened(f"k {words}", version).close()


def wait(s, events=select.POLLIN, timeout=3000):
    p = select.poll()
    p.register(s, events)
    return [e for _, e in p.poll(timeout)]


def all_of(s):
    data = b""
    while part := s.recv(65536):
        data += part
    return data


def number_of(s, request):
    """What an ioctl(2) stores."""
    return call(lambda: struct.unpack("i", fcntl.ioctl(s, request, b"\0\0\0\0"))[0])


libc = ctypes.CDLL(None, use_errno=True)


def c(name, *arguments):
    """A call of the C library: its result, or the name of its error."""
    ctypes.set_errno(0)
    result = getattr(libc, name)(*arguments)
    return result if result != -1 else errno.errorcode.get(ctypes.get_errno())
