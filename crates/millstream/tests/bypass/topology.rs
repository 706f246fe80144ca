//! Two namespaces joined by a veth pair: the server's, in which the test runs, and the clients'.

use crate::namespace::{in_namespace, text_of};
use crate::server::{Server, Site};
use mill_sys::namespace;
use std::fs::{self, File};
use std::process::{Command, Stdio};

/// The server's interface, of one queue, and the stack on it.
pub(crate) const INTERFACE: &str = "mill0";
pub(crate) const STACK: &str = "af_xdp:mill0";

/// A stack on a TAP device with the same addresses ([`Topology::bridge`]), and what joins the device to the bridge.
pub(crate) const BRIDGED: &str = "tap:mill2,address=10.50.0.1/24,address=fd50::1/64";
pub(crate) const JOIN_BRIDGE: &str = "ip link set mill2 master br0";

/// The client's end.
pub(crate) const FAR: &str = "mill1";

/// The server's addresses, as hosts of URLs.
pub(crate) const HOSTS: [&str; 2] = ["10.50.0.1", "[fd50::1]"];

/// An address of the clients' side.
pub(crate) const FAR_ADDRESS: &str = "10.50.0.2";

/// The server's namespace, in which the test's thread is, and that of its clients.
pub(crate) struct Topology {
    server: File,
    client: File,
}

/// Runs a test in the server's namespace, with this MTU.
pub(crate) fn between(mtu: u16, test: impl FnOnce(&Topology) + Send) {
    in_namespace(|| {
        let topology = Topology::lay();
        topology.join(mtu);
        test(&topology);
    });
}

/// The same with these numbers of receive and transmit queues at the server's interface. Clients choose one for each
/// flow, by an unknown hash.
pub(crate) fn between_queues([receive, transmit]: [u32; 2], test: impl FnOnce(&Topology) + Send) {
    in_namespace(|| {
        let topology = Topology::lay();
        let near = format!("numrxqueues {receive} numtxqueues {transmit}");
        let far = format!("numrxqueues {transmit} numtxqueues {receive}");
        topology.join_by(1500, &near, &far);
        test(&topology);
    });
}

impl Topology {
    fn lay() -> Self {
        let server = here();
        namespace::leave_network().unwrap();
        ip("link set lo up");
        let client = here();
        namespace::enter_network(&server).unwrap();
        Self { server, client }
    }

    /// Makes the pair of interfaces, with addresses.
    pub(crate) fn join(&self, mtu: u16) {
        let one_queue = "numrxqueues 1 numtxqueues 1";
        self.join_by(mtu, one_queue, one_queue);
    }

    /// Replaces it by one with two queues at each end.
    pub(crate) fn lay_two_queues(&self) {
        ip(&format!("link delete {INTERFACE}"));
        let two_queues = "numrxqueues 2 numtxqueues 2";
        self.join_by(1500, two_queues, two_queues);
    }

    fn join_by(&self, mtu: u16, near: &str, far: &str) {
        ip(&format!(
            "link add {INTERFACE} mtu {mtu} {near} type veth peer name {FAR} mtu {mtu} {far}"
        ));
        move_to(FAR, &self.client);
        // Without duplicate address detection, which delays addresses by a second or two.
        ip("address add 10.50.0.1/24 dev mill0");
        ip("address add fd50::1/64 dev mill0 nodad");
        ip("link set mill0 up");
        self.at_client(|| {
            ip("address add 10.50.0.2/24 dev mill1");
            ip("address add fd50::2/64 dev mill1 nodad");
            ip("link set mill1 up");
        });
    }

    /// Makes the server's interface a port of a bridge, to which [`BRIDGED`] is joined by [`JOIN_BRIDGE`] once it is there. The
    /// server's addresses are that stack's alone.
    pub(crate) fn bridge(&self) {
        ip("address flush dev mill0");
        ip("link add br0 type bridge forward_delay 0 mcast_snooping 0");
        ip("link set br0 up");
        ip("link set mill0 master br0");
    }

    /// A third, empty namespace.
    pub(crate) fn elsewhere(&self) -> File {
        namespace::leave_network().unwrap();
        ip("link set lo up");
        let third = here();
        namespace::enter_network(&self.server).unwrap();
        third
    }

    /// Runs something in the clients' namespace; processes and threads that it starts stay there.
    pub(crate) fn at_client<T>(&self, run: impl FnOnce() -> T) -> T {
        namespace::enter_network(&self.client).unwrap();
        let result = run();
        namespace::enter_network(&self.server).unwrap();
        result
    }
}

/// A server of two processes on the stack, for both families, once it serves.
pub(crate) fn serve(site: &Site) -> Server {
    serve_on(site, STACK)
}

/// The same on another one.
pub(crate) fn serve_on(site: &Site, stack: &str) -> Server {
    Server::configured(site, &configure(site), &["--stack", stack])
}

/// The configuration of such a server.
pub(crate) fn configure(site: &Site) -> String {
    site.configure("worker_processes 1;", LISTENING)
}

/// Its ports.
pub(crate) const LISTENING: &str =
    "server { listen 80; listen [::]:80; keepalive_requests 1000000; }";

/// Runs ip(8) with these words, in the thread's namespace.
pub(crate) fn ip(words: &str) {
    let words: Vec<&str> = words.split_whitespace().collect();
    text_of("ip", &words);
}

/// Moves an interface of the thread's namespace into another one.
pub(crate) fn move_to(interface: &str, namespace: &File) {
    // It has no name; ip(8) also accepts the path of an open file.
    let mut command = Command::new("ip");
    command.args(["link", "set", interface, "netns", "/proc/self/fd/0"]);
    let namespace = namespace.try_clone().unwrap();
    let moved = command.stdin(Stdio::from(namespace)).status();
    assert!(moved.unwrap().success());
}

/// Whether a program is attached to the server's interface.
pub(crate) fn is_steered() -> bool {
    has_program(INTERFACE)
}

/// The same of any interface of the thread's namespace.
pub(crate) fn has_program(interface: &str) -> bool {
    text_of("ip", &["link", "show", interface]).contains("xdp")
}

/// Segments with RST that the kernel has sent in the calling thread's namespace.
pub(crate) fn resets_of_kernel() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let names = lines.next().unwrap().split_whitespace();
    let values = lines.next().unwrap().split_whitespace();
    let mut columns = names.zip(values);
    let (_, resets) = columns.find(|(name, _)| *name == "OutRsts").unwrap();
    resets.parse().unwrap()
}

/// The kernel's TCP connections at a port, seen from the thread's namespace: lines of ss(8).
pub(crate) fn kernel_connections(port: u16) -> String {
    text_of("ss", &["-Htn", &format!("sport = :{port}")])
}

fn here() -> File {
    File::open("/proc/thread-self/ns/net").unwrap()
}
