"""What several descriptors, threads or processes have of one thing, in programs that begin with it: without a stack at first."""
import subprocess

from scene import *

BEGINNING = """
import ctypes, fcntl, os, select, socket, sys, threading, time
def opened(words):
    s = socket.create_connection(("10.50.0.2", 5001))
    s.sendall(words.encode() + b"\\n")
    return s
def all_of(s):
    count = 0
    while part := s.recv(65536):
        count += len(part)
    return count
"""


def program(code):
    """What a program of its own says."""
    run = subprocess.run([sys.executable, "-c", BEGINNING + code], capture_output=True, timeout=15, text=True)
    return run.returncode, *run.stdout.split(), run.stderr[-200:]


@scene(("0, 1",), ("1, 0",), ("1, 1",), alone=True)
def a_set_and_its_duplicate_are_one(places):
    return (yield from program(f"""
sets = [select.epoll()]
sets.append(select.epoll.fromfd(fcntl.fcntl(sets[0].fileno(), fcntl.F_DUPFD_CLOEXEC, 3)))
adds, waits = sets[({places})[0]], sets[({places})[1]]
s = opened("w100 s5 w500")
adds.register(s.fileno(), select.EPOLLIN)
print(waits.poll(3) == [(s.fileno(), 1)], len(s.recv(9)))
"""))


@scene(alone=True)
def a_thread_waits_for_a_set_before_it_has_a_connection():
    return (yield from program("""
e, found = select.epoll(), []
r, w = os.pipe()
e.register(r, select.EPOLLIN)
t = threading.Thread(target=lambda: found.extend(e.poll(5)))
t.start()
time.sleep(0.3)
s = opened("w300 s5 w500")
e.register(s.fileno(), select.EPOLLIN)
t.join()
print(found == [(s.fileno(), 1)], len(s.recv(9)))
"""))


@scene(alone=True)
def a_thread_waits_for_a_set_that_gets_nothing():
    return (yield from program("""
e = select.epoll()
r, w = os.pipe()
e.register(r, select.EPOLLIN)
began = time.monotonic()
print(e.poll(0.3), 0.29 < time.monotonic() - began < 2)
os.write(w, b"a")
print(e.poll(3) == [(r, 1)])
"""))


@scene((False,), (True,), alone=True)
def what_a_thread_writes_goes_out_while_another_one_sleeps(blocks):
    return (yield from program(f"""
other, s = opened("w3000 s1"), opened("o")
s.setblocking({blocks})
t = threading.Thread(target=lambda: other.recv(1), daemon=True)
t.start()
time.sleep(0.2)
for round in range(20):
    s.send(b"a")
    s.send(b"b")
    # The program computes.
    until = time.monotonic() + 0.05
    while time.monotonic() < until: pass
    print(len(s.recv(9, socket.MSG_DONTWAIT)))
sys.stdout.flush()
os._exit(0)
"""))


@scene(("",), ("s.shutdown(1)",), alone=True)
def what_a_child_has_asked_for_its_parent_reads(after):
    return (yield from program(f"""
s = opened("o")
if os.fork() == 0:
    s.sendall(b"abc" * 1000)
    {after or "pass"}
    time.sleep(0.3)
    os._exit(0)
os.wait()
print(len(s.recv(3000, socket.MSG_WAITALL)))
"""))


@scene(alone=True)
def what_a_child_has_written_goes_before_its_parent_shuts_down():
    return (yield from program("""
s = opened("o")
r = threading.Thread(target=lambda: print(all_of(s)))
if os.fork() == 0:
    s.sendall(bytes(1000000))
    os._exit(0)
r.start()
os.wait()
s.shutdown(1)
r.join()
"""))


@scene((12,), (13,), alone=True)
def options_without_consequence(name):
    return (yield from program(f"""
s = opened("s5")
s.setsockopt(0, {name}, 1)
s.setsockopt(1, 12, 3)
print(len(s.recv(5, socket.MSG_WAITALL)))
"""))


@scene(alone=True)
def a_connection_goes_with_a_process_that_becomes_a_daemon():
    return (yield from program("""
s = opened("o")
r, w = os.pipe()
first = os.getpid()
if ctypes.CDLL(None).daemon(1, 1) != 0: print("no daemon")
if os.getpid() != first:
    # The first process has ended by now, or is about to.
    time.sleep(0.5)
    s.sendall(b"abc")
    print(len(s.recv(3, socket.MSG_WAITALL)), flush=True)
    os._exit(0)
"""))


@scene(alone=True)
def a_child_looks_at_bytes_that_come_in_two_parts():
    return (yield from program("""
s = opened("s5 w200 s5 w500")
if os.fork() == 0:
    seen = 0
    until = time.monotonic() + 3
    while seen < 10 and time.monotonic() < until:
        seen = len(s.recv(10, socket.MSG_PEEK))
    print(seen, len(s.recv(10)), flush=True)
    os._exit(0)
os.wait()
"""))
