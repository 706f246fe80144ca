"""Random sequences of socket calls against agent.py, a line for each: sequences.py PAUSE_MS SEED… or FIRST-LAST.

What is called depends on the seed alone. After each call there is a pause, in which all that is on its way arrives.
"""
import sys

sys.dont_write_bytecode = True

import random
import tempfile

from scene import *

FLAGS = [IN, OUT, IN | OUT, IN | ET, OUT | ET, IN | OUT | RDHUP | ET, IN | ONE, RDHUP, 0, IN | RDHUP]
ANY = select.POLLIN | select.POLLOUT | select.POLLPRI | select.POLLRDHUP
SLOTS = 3


class Agent:
    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect((FAR[4], 5004))
        self.socket.settimeout(2)
        self.count = 0

    def ask(self, *words):
        self.count += 1
        self.socket.send(" ".join(map(str, (self.count, *words))).encode())
        while True:
            number, _, answer = self.socket.recv(1000).decode().partition(" ")
            if int(number) == self.count:
                return answer


class Sequence:
    """Sockets in slots, with the names of their far ends, an epoll set and a listener."""

    def __init__(self, seed, agent, turned, pause_ms):
        self.random = random.Random(seed)
        self.agent, self.turned, self.pause_ms = agent, turned, pause_ms
        self.slots = [None] * SLOTS
        self.names = ["none"] * SLOTS
        self.set = select.epoll()
        self.listener = None

    def settle(self):
        wait(self.turned, select.POLLIN, self.pause_ms)

    def run(self):
        told_of = []
        self.connect(0)
        for _ in range(self.random.randrange(4, 16)):
            act = self.random.choice(ACTS)
            slot = self.random.randrange(SLOTS)
            name = f"{act.__name__}{slot}"
            if self.slots[slot] is None and act not in WITHOUT_SOCKET:
                act = Sequence.connect
                name = f"connect{slot}"
            told_of.append(f"{name}={act(self, slot)}")
            self.settle()
        told_of.append(f"end={self.end()}")
        return " ".join(told_of).replace("\n", " ")

    def end(self):
        found = [[wait(s, ANY, 0), call(s.getsockopt, socket.SOL_SOCKET, socket.SO_ERROR)] if s else None for s in self.slots]
        for s in self.slots:
            if s:
                s.close()
        self.settle()
        ends = sorted(self.agent.ask("end", name) for name in set(self.names) if name != "none")
        self.set.close()
        if self.listener:
            self.listener.close()
        self.agent.ask("clear", "all")
        self.settle()
        return found, ends

    def fill(self, slot, s, name):
        if self.slots[slot]:
            self.slots[slot].close()
        self.slots[slot], self.names[slot] = s, name

    def connect(self, slot):
        s = fresh()
        s.setblocking(False)
        port = self.random.choice([5003] * 8 + [9, SILENT])
        result = call(s.connect, (FAR[4], port))
        self.fill(slot, s, f"a{s.getsockname()[1]}" if port == 5003 else "none")
        self.settle()
        return result

    def connect_again(self, slot):
        port = self.random.choice([5003, 9])
        result = call(self.slots[slot].connect, (FAR[4], port))
        if result == "EINPROGRESS" and port == 5003:
            self.names[slot] = f"a{self.slots[slot].getsockname()[1]}"
        return result

    def fresh(self, slot):
        s = fresh()
        s.setblocking(False)
        self.fill(slot, s, "none")
        return ""

    def duplicate(self, slot):
        to = self.random.randrange(SLOTS)
        # A duplicate from before connect(2) does not become the stack's (COMPLIANCE.md).
        if to != slot and self.names[slot] != "none":
            self.fill(to, self.slots[slot].dup(), self.names[slot])
        return to

    def close(self, slot):
        self.slots[slot].close()
        self.slots[slot] = None
        return ""

    def send(self, slot):
        data = b"x" * self.random.choice((0, 1, 10, 700))
        return call(self.slots[slot].send, data, self.random.choice((0, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)))

    def writev(self, slot):
        return call(os.writev, self.slots[slot].fileno(), [b"x" * self.random.choice((0, 1, 300)) for _ in range(3)])

    def sendmsg(self, slot):
        return call(self.slots[slot].sendmsg, [b"ab", b"c" * self.random.choice((0, 200))])

    def sendfile(self, slot):
        return call(os.sendfile, self.slots[slot].fileno(), FILE.fileno(), self.random.choice((0, 900, 1000)), self.random.choice((0, 50, 500)))

    def recv(self, slot):
        return call(self.slots[slot].recv, self.random.choice((0, 1, 50, 5000)), self.random.choice((0, 0, socket.MSG_PEEK, socket.MSG_WAITALL, socket.MSG_OOB, socket.MSG_ERRQUEUE)))

    def discard(self, slot):
        count = self.random.choice((1, 50, 5000))
        return call(lambda: len(self.slots[slot].recv(count, socket.MSG_TRUNC)))

    def readv(self, slot):
        return call(os.readv, self.slots[slot].fileno(), [bytearray(self.random.choice((0, 5, 100))) for _ in range(3)])

    def shutdown(self, slot):
        return call(self.slots[slot].shutdown, self.random.choice((socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR)))

    def names_of(self, slot):
        s = self.slots[slot]
        return call(lambda: s.getpeername()[0]), call(lambda: s.getsockname()[1] > 0)

    def error(self, slot):
        return call(self.slots[slot].getsockopt, socket.SOL_SOCKET, socket.SO_ERROR)

    def unread(self, slot):
        return number_of(self.slots[slot], termios.FIONREAD)

    def option(self, slot):
        level, name, value = self.random.choice(OPTIONS)
        s = self.slots[slot]
        return call(s.setsockopt, level, name, value), call(s.getsockopt, level, name)

    def linger(self, slot):
        on = self.random.randrange(2)
        return call(self.slots[slot].setsockopt, socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", on, 0))

    def polled(self, slot):
        return wait(self.slots[slot], ANY, 0)

    def selected(self, slot):
        s = self.slots[slot]
        return [len(part) for part in select.select([s], [s], [s], 0)]

    def watch(self, slot):
        return call(self.set.register, self.slots[slot], self.random.choice(FLAGS))

    def modify(self, slot):
        return call(self.set.modify, self.slots[slot], self.random.choice(FLAGS))

    def unwatch(self, slot):
        return call(self.set.unregister, self.slots[slot])

    def events(self, _slot):
        numbers = {s.fileno(): i for i, s in enumerate(self.slots) if s}
        return sorted((numbers.get(fd, "?"), e) for fd, e in self.set.poll(0))

    def listen(self, _slot):
        if not self.listener:
            self.listener = fresh()
            self.listener.bind((NEAR[4], 0))
            self.listener.listen(5)
            self.listener.setblocking(False)
            wait(self.listener, select.POLLIN, 0)
        answer = self.agent.ask("open", NEAR[4], self.listener.getsockname()[1])
        return answer[0]

    def accept(self, slot):
        if not self.listener:
            return ""
        try:
            c, peer = self.listener.accept()
        except OSError as error:
            return errno.errorcode[error.errno]
        c.setblocking(False)
        self.fill(slot, c, f"o{peer[1]}")
        return "accepted"

    def told_to_listen(self, slot):
        # One that would succeed leads elsewhere.
        return call(self.slots[slot].listen, 5) if call(self.slots[slot].getpeername) != "ENOTCONN" else ""

    def far_sends(self, slot):
        return self.agent.ask("send", self.names[slot], self.random.choice((1, 60, 900)))

    def far_half_closes(self, slot):
        return self.agent.ask("half", self.names[slot])

    def far_closes(self, slot):
        self.agent.ask("drain", self.names[slot])
        return self.agent.ask("close", self.names[slot])

    def far_resets(self, slot):
        return self.agent.ask("reset", self.names[slot])

    def far_drains(self, slot):
        return self.agent.ask("drain", self.names[slot])


S = Sequence
ACTS = [S.connect, S.connect_again, S.fresh, S.duplicate, S.close, S.send, S.send, S.writev, S.sendmsg, S.sendfile, S.recv, S.recv, S.recv, S.discard, S.readv,
        S.shutdown, S.shutdown, S.names_of, S.error, S.unread, S.option, S.linger, S.polled, S.polled, S.selected, S.watch, S.watch, S.modify, S.unwatch, S.events,
        S.events, S.events, S.listen, S.accept, S.accept, S.told_to_listen, S.far_sends, S.far_sends, S.far_sends, S.far_half_closes, S.far_closes, S.far_resets, S.far_drains]
WITHOUT_SOCKET = {S.connect, S.fresh, S.events, S.listen, S.accept}
OPTIONS = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 0),
           (socket.IPPROTO_TCP, socket.TCP_CORK, 1), (socket.IPPROTO_TCP, socket.TCP_CORK, 0), (socket.SOL_SOCKET, socket.SO_RCVLOWAT, 40), (socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)]
FILE = tempfile.TemporaryFile()
FILE.write(bytes(1000))
FILE.flush()


def seeds(words):
    for word in words:
        first, _, last = word.partition("-")
        yield from range(int(first), int(last or first) + 1)


def main():
    agent = Agent()
    turned = opened("w3600000")
    for seed in seeds(sys.argv[2:]):
        try:
            line = Sequence(seed, agent, turned, int(sys.argv[1])).run()
        except Exception as error:
            line = f"{type(error).__name__} {error}"
        print(seed, line, flush=True)


main()
