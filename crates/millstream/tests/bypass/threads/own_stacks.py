"""Threads with a stack each: sets and polls that watch sockets of several, a child, and files that are opened meanwhile."""

import os
import select
import socket
import sys
import threading

ECHO = (sys.argv[1], 7000)


def connected():
    return socket.create_connection(ECHO, timeout=20)


def in_thread(work):
    """What the work gives, in a thread of its own, which ends."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def echoed(connection, text):
    connection.sendall(text)
    got = b""
    while len(got) < len(text):
        part = connection.recv(65536)
        if not part:
            break
        got += part
    return got == text


def watched_by_a_set():
    """A set watches sockets of three stacks; an edge, a level and a nested one."""
    near, others = connected(), [in_thread(connected) for _ in range(2)]
    inner, outer = select.epoll(), select.epoll()
    outer.register(inner.fileno(), select.EPOLLIN)
    found = set()
    for number, connection in enumerate([near, *others]):
        inner.register(connection.fileno(), select.EPOLLIN | (select.EPOLLET if number == 1 else 0))
        connection.sendall(b"x")
        if not outer.poll(20):
            return "the outer set says nothing"
        found |= {fd for fd, _ in inner.poll(20)}
        connection.recv(1)
    return found == {connection.fileno() for connection in [near, *others]} or found


def added_while_another_thread_waits():
    set_of_all = select.epoll()
    first = connected()
    set_of_all.register(first.fileno(), select.EPOLLIN)
    found = []
    waiting = threading.Thread(target=lambda: found.extend(set_of_all.poll(20)))
    waiting.start()
    other = in_thread(connected)

    def add():
        set_of_all.register(other.fileno(), select.EPOLLIN)
        other.sendall(b"x")

    in_thread(add)
    waiting.join()
    return [fd for fd, _ in found] == [other.fileno()] or found


def polled():
    connections = [connected(), in_thread(connected)]
    asked = select.poll()
    for connection in connections:
        asked.register(connection.fileno(), select.POLLIN)
    connections[1].sendall(b"x")
    ready = asked.poll(20000)
    readable, _, _ = select.select(connections, [], [], 20)
    is_right = [fd for fd, _ in ready] == [connections[1].fileno()] and readable == [connections[1]]
    return is_right or (ready, readable)


def used_by_another_thread():
    connection = in_thread(connected)
    text = os.urandom(300_000)
    sending = threading.Thread(target=connection.sendall, args=(text,))
    sending.start()
    got = b""
    while len(got) < len(text):
        got += connection.recv(65536)
    sending.join()
    return got == text


def forked():
    """A child has connections of its own, and its parent's go on."""
    connections = [connected(), in_thread(connected)]
    child = os.fork()
    if child == 0:
        os._exit(0 if echoed(connected(), b"of a child") else 1)
    _, status = os.waitpid(child, 0)
    return status == 0 and all(echoed(connection, b"of its parent") for connection in connections)


def files_meanwhile():
    """Descriptors that one thread opens while others make their stacks stay the program's."""
    wrong = []
    goes_on = True

    def open_and_close():
        while goes_on:
            numbers = [os.open("/dev/null", os.O_RDONLY), *os.pipe(), select.epoll().detach()]
            for number in numbers:
                try:
                    os.close(number)
                except OSError as error:
                    wrong.append(str(error))

    opening = threading.Thread(target=open_and_close)
    opening.start()
    is_echoed = [in_thread(lambda: echoed(connected(), b"meanwhile")) for _ in range(20)]
    goes_on = False
    opening.join()
    return (all(is_echoed) and not wrong) or wrong


for scene in [
    files_meanwhile,
    watched_by_a_set,
    added_while_another_thread_waits,
    polled,
    used_by_another_thread,
    forked,
]:
    print(scene.__name__, scene(), flush=True)
