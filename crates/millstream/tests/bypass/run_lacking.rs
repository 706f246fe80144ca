//! What connections of the stack lack fails as on a kernel without it.

use crate::namespace::{has, output_of};
use crate::run::BINARY;
use crate::run_calls::{FAR, PYTHON, started};
use crate::topology::{STACK, Topology, between};

/// What a script on the stack prints, and what is said on standard error, beside a far end that echoes.
fn heard(topology: &Topology, script: &str) -> [String; 2] {
    let _far = started(topology, FAR);
    let words = ["run", "--stack", STACK, "--", PYTHON, "-c", script];
    let output = output_of(BINARY, &words);
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn out_of_band_data_are_refused_and_not_sent_among_others() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    let script = "
import socket
s = socket.create_connection(('10.50.0.2', 5001))
s.sendall(b'o\\n')
def said(send, *arguments):
    try:
        return send(*arguments)
    except OSError as error:
        return error.strerror
flags = socket.MSG_OOB
print(said(s.send, b'x', flags), said(s.sendto, b'x', flags, ('10.50.0.2', 5001)), said(s.sendmsg, [b'x'], [], flags), sep=', ')
print(s.send(b'abc'), s.recv(9))
";
    between(1500, |topology| {
        let [said, errors] = heard(topology, script);
        let unsupported = "Operation not supported";
        assert_eq!(
            said,
            format!("{unsupported}, {unsupported}, {unsupported}\n3 b'abc'\n"),
            "{errors}"
        );
        assert_eq!(errors.matches("MSG_OOB").count(), 1, "{errors}");
    });
}

/// Children have their parent's connections by way of it.
#[test]
fn a_child_that_uses_a_connection_of_a_parent_that_was_killed_is_told_once_why_it_cannot() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    let script = "
import os, signal, socket
s = socket.create_connection(('10.50.0.2', 5001))
s.sendall(b'o\\n')
r, w = os.pipe()
if os.fork() == 0:
    os.close(w)
    os.read(r, 1)
    for _ in range(2):
        try:
            s.send(b'abc')
        except OSError as error:
            print(error.errno, flush=True)
else:
    os.kill(os.getpid(), signal.SIGKILL)
";
    between(1500, |topology| {
        let [said, errors] = heard(topology, script);
        assert_eq!(said, "107\n107\n", "{errors}");
        assert_eq!(errors.matches("that its parent had").count(), 1, "{errors}");
    });
}

/// The kernel would do what a ring is asked for with what stands for connections there.
#[test]
fn rings_of_the_kernel_are_refused() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    let script = "
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
parameters = ctypes.create_string_buffer(120)
print(libc.syscall(ctypes.c_long(425), ctypes.c_long(8), parameters), errno.errorcode[ctypes.get_errno()])
";
    between(1500, |topology| {
        let [said, errors] = heard(topology, script);
        assert_eq!(said, "-1 ENOSYS\n", "{errors}");
    });
}

/// Programs have all that they do not know be closed in those that they start, in several ways.
#[test]
fn a_program_that_is_started_has_the_stack_whatever_was_to_be_closed() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    let script = "
import ctypes, fcntl, os, socket, sys
libc = ctypes.CDLL(None)
FIOCLEX = 0x5451
CLOSE_ON_EXEC = 4
there = lambda: [fd for fd in range(3, 1024) if os.path.exists(f'/proc/self/fd/{fd}')]
ways = [
    lambda: [fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC) for fd in there()],
    lambda: [libc.ioctl(fd, ctypes.c_ulong(FIOCLEX)) for fd in range(3, 1024)],
    lambda: libc.close_range(3, 0x7fffffff, CLOSE_ON_EXEC),
    lambda: os.closerange(3, 1024),
]
program = 'import socket, subprocess; s = socket.create_connection((\"10.50.0.2\", 5001)); ' \
    'print(subprocess.run([\"ss\", \"-Htn\"], capture_output=True).stdout, flush=True)'
for way in ways:
    if os.fork() == 0:
        way()
        os.execv(sys.executable, [sys.executable, '-c', program])
    print(os.wait()[1], flush=True)
";
    between(1500, |topology| {
        let [said, errors] = heard(topology, script);
        assert_eq!(said, "b''\n0\n".repeat(4), "{errors}");
    });
}

/// The child of a child whose parent has no descriptors for it: its own parent's connection is lost, and is not taken for one of the first
/// parent's, which has the same number there.
#[test]
fn a_connection_that_can_t_be_lent_is_taken_for_no_other_one() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    let script = "
import os, resource, socket
def opened(word):
    s = socket.create_connection(('10.50.0.2', 5001))
    s.sendall(word)
    return s
first = opened(b'o\\n')
if os.fork() == 0:
    second = opened(b'o\\n')
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, 20000))
    filled = []
    try:
        while True:
            filled.append(os.open('/dev/null', os.O_RDONLY))
    except OSError:
        pass
    if os.fork() == 0:
        for number in filled:
            os.close(number)
        try:
            print(second.send(b'abc'), flush=True)
        except OSError as error:
            print(error.errno, flush=True)
        os._exit(0)
    os.wait()
    for number in filled:
        os.close(number)
    print(second.send(b'abc'), second.recv(3), first.send(b'x'), first.recv(1), flush=True)
    os._exit(0)
os.wait()
";
    between(1500, |topology| {
        let [said, errors] = heard(topology, script);
        assert_eq!(said, "107\n3 b'abc' 1 b'x'\n", "{errors}");
    });
}
