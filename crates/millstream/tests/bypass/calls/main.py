"""Small scenes of socket calls against far.py, one line of results each: the kernel and the stack have to say the same.

All of them, several at a time, but those whose names are arguments behind a minus; or those whose names are arguments, one after
the other.
"""
import sys

sys.dont_write_bytecode = True

import importlib
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor, TimeoutError

from scene import SCENES, opened

SUBJECTS = ["opening", "unused", "reading", "writing", "splicing", "ends", "listeners", "settings", "states", "events", "descriptors", "pointers", "stdio", "processes", "children", "passing", "several"]
THREADS = 6
SECONDS_MAX = 40


def name_of(run, arguments):
    return (run.__name__ + "".join(f"-{getattr(a, '__name__', a)}" for a in arguments)).replace(" ", "_")


def line_of(run, arguments):
    results = []
    try:
        for result in run(*arguments):
            results.append(result)
    except Exception as error:
        results.append(f"{type(error).__name__} {error}")
    return " ".join(str(part) for part in [name_of(run, arguments), *results])


def lines_of(run, variants):
    return [line_of(run, arguments) for arguments in variants]


def overdue(*_):
    raise TimeoutError("the scene takes too long")


def print_all_of(run, variants):
    for arguments in variants:
        before = signal.signal(signal.SIGUSR1, overdue)
        timer = threading.Timer(6, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1))
        timer.start()
        print(line_of(run, arguments), flush=True)
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGUSR1, before)


def chosen(names, left_out):
    """All but those left out, or those of these names."""
    for run, variants, alone, together in SCENES:
        variants = [a for a in variants if name_of(run, a) not in left_out and (not names or name_of(run, a) in names)]
        for part in [variants] if together else [[arguments] for arguments in variants]:
            yield run, part, alone


def wait_for_addresses():
    """A stack that has addresses of its own finds out first whether they are free (RFC 4862 5.4)."""
    late = time.monotonic() + 5
    for version in (4, 6):
        while True:
            try:
                opened("o", version).close()
                break
            except OSError:
                if time.monotonic() > late:
                    raise
                time.sleep(0.02)


def main():
    wait_for_addresses()
    for subject in SUBJECTS:
        importlib.import_module(subject)
    names = {word for word in sys.argv[1:] if not word.startswith("-")}
    left_out = {word[1:] for word in sys.argv[1:] if word.startswith("-")}
    scenes = list(chosen(names, left_out))
    deadline = time.monotonic() + SECONDS_MAX
    threads = ThreadPoolExecutor(1 if names else THREADS)
    waiting = [(run, variants, threads.submit(lines_of, run, variants)) for run, variants, alone in scenes if not alone]
    late = False
    for run, variants, lines in waiting:
        try:
            print(*lines.result(max(0, deadline - time.monotonic())), sep="\n", flush=True)
        except TimeoutError:
            late = True
            print(name_of(run, variants[0]), "takes too long", flush=True)
    if late:
        os._exit(1)
    threads.shutdown()
    for run, variants, alone in scenes:
        if alone:
            print_all_of(run, variants)


main()
