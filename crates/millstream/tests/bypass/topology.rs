//! Two namespaces joined by a veth pair: the server's, in which the test is, and the clients'.

use crate::namespace::{in_namespace, text_of};
use crate::server::{Server, Site};
use mill_sys::namespace;
use std::fs::File;
use std::process::{Command, Stdio};

/// The server's interface, of one queue, and the stack on it.
pub(crate) const INTERFACE: &str = "mill0";
pub(crate) const STACK: &str = "af_xdp:mill0";

/// The client's end.
pub(crate) const FAR: &str = "mill1";

/// The server's addresses, as hosts of URLs.
pub(crate) const HOSTS: [&str; 2] = ["10.50.0.1", "[fd50::1]"];

/// The server's namespace, in which the test's thread is, and that of its clients.
pub(crate) struct Topology {
    server: File,
    client: File,
}

/// Runs a test in the server's namespace, with interfaces that carry packets of so many bytes.
pub(crate) fn between(mtu: u16, test: impl FnOnce(&Topology) + Send) {
    in_namespace(|| {
        let topology = Topology::lay(mtu);
        test(&topology);
    });
}

impl Topology {
    fn lay(mtu: u16) -> Self {
        let server = here();
        namespace::leave_network().unwrap();
        ip("link set lo up");
        let client = here();
        namespace::enter_network(&server).unwrap();
        let topology = Self { server, client };
        topology.join(mtu);
        topology
    }

    /// Makes the pair of interfaces, with addresses.
    pub(crate) fn join(&self, mtu: u16) {
        let one_queue = "numrxqueues 1 numtxqueues 1";
        ip(&format!(
            "link add {INTERFACE} mtu {mtu} {one_queue} type veth peer name {FAR} mtu {mtu} {one_queue}"
        ));
        // The namespace has no name; ip(8) takes the path of an open file as well.
        let mut command = Command::new("ip");
        command.args(["link", "set", FAR, "netns", "/proc/self/fd/0"]);
        let client = self.client.try_clone().unwrap();
        let moved = command.stdin(Stdio::from(client)).status();
        assert!(moved.unwrap().success());
        // Without detection of duplicates, which makes addresses wait for a second or two.
        ip("address add 10.50.0.1/24 dev mill0");
        ip("address add fd50::1/64 dev mill0 nodad");
        ip("link set mill0 up");
        self.at_client(|| {
            ip("address add 10.50.0.2/24 dev mill1");
            ip("address add fd50::2/64 dev mill1 nodad");
            ip("link set mill1 up");
        });
    }

    /// Runs something in the clients' namespace; processes and threads that it starts stay there.
    pub(crate) fn at_client<T>(&self, run: impl FnOnce() -> T) -> T {
        namespace::enter_network(&self.client).unwrap();
        let result = run();
        namespace::enter_network(&self.server).unwrap();
        result
    }
}

/// A server of two processes on the stack, for both families, once it serves there.
pub(crate) fn serve(site: &Site) -> Server {
    let listening = "server { listen 80; listen [::]:80; }";
    let conf = site.configure("worker_processes 1;", listening);
    Server::configured(site, &conf, &["--stack", STACK])
}

/// Runs ip(8) with these words, in the thread's namespace.
pub(crate) fn ip(words: &str) {
    let words: Vec<&str> = words.split_whitespace().collect();
    text_of("ip", &words);
}

/// Whether a program is attached to the server's interface.
pub(crate) fn is_steered() -> bool {
    text_of("ip", &["link", "show", INTERFACE]).contains("xdp")
}

/// The kernel's TCP connections at a port, seen from the thread's namespace: lines of ss(8).
pub(crate) fn kernel_connections(port: u16) -> String {
    text_of("ss", &["-Htn", &format!("sport = :{port}")])
}

fn here() -> File {
    File::open("/proc/thread-self/ns/net").unwrap()
}
