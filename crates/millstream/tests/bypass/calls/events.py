"""Waiting: epoll(7), poll(2), select(2)."""
from scene import *


def events(p, timeout=0.5):
    return [e for _, e in p.poll(timeout)]


@scene(*[(flags,) for flags in (IN, IN | ET, IN | ONE, IN | OUT, IN | OUT | ET, IN | RDHUP, IN | RDHUP | ET, OUT, OUT | ET, RDHUP, 0)])
def epoll_of_a_life(flags):
    s = opened("w100 s5 w100 s5 w100 c", blocking=False)
    p = select.epoll()
    p.register(s, flags)
    quiet = flags & OUT and not flags & (ET | ONE)
    if quiet:
        time.sleep(0.45)
    for _ in range(5):
        yield events(p, 0 if quiet else 0.25)
    yield call(s.recv, 3), events(p, 0), call(s.recv, 30), events(p, 0)


@scene((IN,), (IN | ET,), (IN | ONE,))
def epoll_modified(flags):
    s = opened("s5 w100 c", blocking=False)
    p = select.epoll()
    p.register(s, flags)
    wait(s)
    yield events(p), events(p, 0)
    p.modify(s, flags)
    yield events(p, 0)
    p.modify(s, 0)
    yield events(p, 0)
    p.modify(s, flags)
    p.unregister(s)
    yield events(p, 0), call(p.modify, s, flags), call(p.unregister, s)


@scene()
def epoll_registered_twice():
    s = opened("o")
    p = select.epoll()
    p.register(s, IN)
    yield call(p.register, s, IN)
    d = s.dup()
    p.register(d, IN)
    s.send(b"x")
    wait(s)
    yield len(p.poll(0.2))
    s.close()
    yield len(p.poll(0.2)) >= 1


@scene((IN,), (IN | ET,), (IN | select.EPOLLEXCLUSIVE,), together=True)
def epoll_of_a_listener(flags):
    s = listening(7110)
    s.setblocking(False)
    p = select.epoll()
    p.register(s, flags)
    yield events(p, 0)
    for _ in range(2):
        ask(f"{NEAR[4]} 7110 w300 c")
        yield events(p)
        c = s.accept()[0]
        yield events(p, 0)
        c.close()


@scene()
def epoll_mixed_with_a_pipe():
    s = opened("w50 s5 w50 c", blocking=False)
    r, w = os.pipe()
    p = select.epoll()
    p.register(s, IN)
    p.register(r, IN)
    yield len(events(p, 0))
    os.write(w, b"x")
    yield [fd == r for fd, _ in p.poll(0)]
    os.read(r, 1)
    yield [fd == s.fileno() for fd, _ in p.poll(1)]
    os.write(w, b"x")
    yield len(events(p, 0))


@scene()
def epoll_set_with_a_duplicate():
    s = opened("s1 w300 c", blocking=False)
    p = select.epoll()
    p.register(s, IN)
    d = select.epoll.fromfd(os.dup(p.fileno()))
    p.close()
    yield events(d), call(d.register, s, IN)


@scene(alone=True)
def a_handler_writes_to_the_connection_that_waits():
    s = opened("o")
    before = signal.signal(signal.SIGALRM, lambda *_: s.send(b"abc"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    yield told(s.recv(3, socket.MSG_WAITALL))
    signal.signal(signal.SIGALRM, before)


@scene(alone=True)
def descriptors_of_threads_that_waited():
    s = opened("w200 c", blocking=False)
    count = len(os.listdir("/proc/self/fd"))
    threads = [threading.Thread(target=lambda: wait(s, select.POLLIN, 50)) for _ in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    yield len(os.listdir("/proc/self/fd")) - count


@scene()
def epoll_count_is_bounded():
    socks = [opened("s1 w200 c", blocking=False) for _ in range(5)]
    for s in socks:
        wait(s)
    p = select.epoll()
    for s in socks:
        p.register(s, IN)
    yield len(p.poll(0.2, 2)), len(p.poll(0.2, 3)), len(p.poll(0.2, 100))


@scene()
def epoll_times_out():
    s = opened("w500 c")
    p = select.epoll()
    p.register(s, IN)
    began = time.monotonic()
    yield events(p, 0.1), 0.09 < time.monotonic() - began < 0.3


@scene()
def epoll_in_another_thread():
    s = opened("w100 c", blocking=False)
    p = select.epoll()
    t = opened("w50 s5 w100 c", blocking=False)
    found = []
    thread = threading.Thread(target=lambda: found.extend(p.poll(3)))
    thread.start()
    time.sleep(0.02)
    p.register(t, IN)
    thread.join()
    yield [(fd == t.fileno(), e) for fd, e in found]


@scene((select.POLLIN,), (select.POLLOUT,), (select.POLLIN | select.POLLOUT,), (select.POLLRDHUP,), (select.POLLPRI,), (0,))
def poll_of_a_life(wanted):
    s = opened("w50 s5 w50 c")
    yield wait(s, wanted, 0)
    time.sleep(0.07)
    yield wait(s, wanted, 0)
    time.sleep(0.1)
    yield wait(s, wanted, 0)
    s.shutdown(socket.SHUT_WR)
    yield wait(s, wanted, 0)


@scene(alone=True)
def poll_of_bad_and_negative():
    p = select.poll()
    s = opened("w50 c")
    p.register(s, select.POLLIN)
    p.register(98, select.POLLIN)
    yield [(fd == 98, e) for fd, e in p.poll(0)]


@scene()
def select_of_a_life():
    s = opened("w50 s5 w50 c")
    yield [len(x) for x in select.select([s], [s], [s], 0)]
    yield [len(x) for x in select.select([s], [], [], 1)]
    s.recv(5)
    yield [len(x) for x in select.select([s], [], [], 0)], [len(x) for x in select.select([s], [], [], 1)]
    yield [len(x) for x in select.select([s], [], [s], 0)]


@scene()
def select_times_out_beside_a_pipe():
    s = opened("w500 c")
    r, w = os.pipe()
    yield [len(x) for x in select.select([s, r], [], [], 0.05)]
    os.write(w, b"x")
    yield [x == r for x in select.select([s, r], [], [], 1)[0]]
