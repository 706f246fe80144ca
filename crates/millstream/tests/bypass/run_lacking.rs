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
fn a_child_that_uses_a_connection_of_a_parent_that_is_gone_is_told_once_why_it_cannot() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    let script = "
import os, socket
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
";
    between(1500, |topology| {
        let [said, errors] = heard(topology, script);
        assert_eq!(said, "107\n107\n", "{errors}");
        assert_eq!(errors.matches("that its parent had").count(), 1, "{errors}");
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
