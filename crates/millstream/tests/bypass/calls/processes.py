"""Signals, processes, threads."""
from scene import *


class Alarm(Exception):
    pass


@scene(("recv",), ("poll",), ("epoll",), ("select",), ("accept",), alone=True)
def a_signal_ends_a_wait(how):
    def handler(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, handler)
    s = listening(7111) if how == "accept" else opened("w900 c")
    waits = {
        "recv": lambda: s.recv(1),
        "poll": lambda: wait(s, select.POLLIN, 700),
        "epoll": lambda: select_epoll(s),
        "select": lambda: select.select([s], [], [], 0.7),
        "accept": lambda: s.accept(),
    }
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    began = time.monotonic()
    try:
        waits[how]()
        yield "not interrupted"
    except Alarm:
        yield "interrupted", time.monotonic() - began < 0.5
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def select_epoll(s):
    p = select.epoll()
    p.register(s, IN)
    return p.poll(0.7)


@scene(alone=True)
def a_signal_handler_that_returns_goes_on():
    count = []
    before = signal.signal(signal.SIGALRM, lambda *_: count.append(1))
    s = opened("w200 s5 c")
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    yield told(s.recv(10)), len(count)
    signal.signal(signal.SIGALRM, before)


@scene(alone=True)
def threads_share_a_connection():
    s = opened("o")
    n = 200
    got = []

    def read():
        data = b""
        while len(data) < n * 100:
            data += s.recv(1000)
        got.append(len(data))

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=lambda: [s.sendall(b"x" * 100) for _ in range(n // 4)]) for _ in range(4)]
    for t in [reader, *writers]:
        t.start()
    for t in [reader, *writers]:
        t.join()
    yield got


@scene(alone=True)
def a_child_leaves_the_parents_connection_alone():
    s = opened("o")
    if os.fork() == 0:
        s.close()
        os._exit(0)
    os.wait()
    yield s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL))


@scene()
def many_connections():
    socks = [opened("s3 w300 c", blocking=False) for _ in range(100)]
    for s in socks:
        wait(s)
    yield {told(s.recv(10)) for s in socks}
    for s in socks:
        s.close()
