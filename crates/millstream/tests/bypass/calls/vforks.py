"""What a parent finds when vfork(2) returns, a line for each way in which its child goes on. On the stack only: Python can't be run twice in
the same memory.
"""
import sys

sys.dont_write_bytecode = True

from scene import *

VFORK = 58
# Keeps Python's lock, which no thread of a child would release.
held = ctypes.PyDLL(None, use_errno=True)
WAYS = {"by name": lambda: held.vfork(), "by number": lambda: held.syscall(VFORK)}
LATER = []
ARGUMENTS = (ctypes.c_char_p * 4)(b"sh", b"-c", b"exit 3", None)


def run(path):
    return held.execv(path, ARGUMENTS)


def numbers():
    """Those of the program; the library's are above."""
    return {n for n in map(int, os.listdir("/proc/self/fd")) if n < 400}


def close_others(w):
    os.closerange(3, w)
    os.closerange(w + 1, 5000)
    time.sleep(0.05)
    os.write(w, b"closed")


def leave_a_child(w):
    """It lives until the parent has gone on."""
    os.write(w, b"left")
    if os.fork() == 0:
        os.close(LATER[1])
        os.read(LATER[0], 1)
        os._exit(0)


ACTS = {
    "runs a program": lambda w: (os.write(w, b"run"), run(b"/bin/sh")),
    "ends": lambda w: os.write(w, b"end"),
    "runs no program": lambda w: (os.write(w, b"run"), run(b"/none")),
    "is killed": lambda w: (os.write(w, b"kill"), os.kill(os.getpid(), signal.SIGKILL)),
    "closes all": close_others,
    "has a child": leave_a_child,
}


def main():
    s = opened("o")
    handled = []
    signal.signal(signal.SIGALRM, lambda *_: handled.append(1))
    for name, vfork in WAYS.items():
        for act in ACTS:
            LATER[:] = os.pipe()
            r, w = os.pipe()
            os.set_blocking(r, False)
            before = numbers()
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            child = vfork()
            if child == 0:
                if numbers() ^ before:
                    os.write(w, b"other descriptors,")
                time.sleep(0.08)
                ACTS[act](w)
                os._exit(4)
            try:
                said = os.read(r, 100)
            except BlockingIOError:
                said = b"nothing yet"
            same = numbers() == before
            os.close(LATER[1])
            status = os.waitpid(child, 0)[1]
            print(name, act, said.decode(), status, same, s.send(b"abc"), told(s.recv(3, socket.MSG_WAITALL)), sep=", ")
            for number in (r, w, LATER[0]):
                os.close(number)
    print(len(handled))


main()
