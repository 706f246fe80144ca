//! The program at one end of a veth pair: what still works, and what remains.

use super::frames::TCP;
use crate::af_xdp::setup;
use crate::steering::{Steering, SteeringError, Table, WantedMode, attached};
use mill_stack::link::Service;
use mill_sys::bpf::link::Mode;
use mill_sys::memory::Pages;
use mill_sys::xsk::Copying;
use mill_sys::{descriptor, interface, namespace, process};
use mill_wire::protocol::Protocol;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

const NEAR: [&str; 2] = ["10.0.0.1", "fd00::1"];
const FAR: [&str; 2] = ["10.0.0.2", "fd00::2"];

/// Runs ip(8) in the thread's namespace.
pub(super) fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {output:?}");
}

/// Another host: a thread in a network namespace of its own, which vanishes with it.
struct FarHost(Sender<Box<dyn FnOnce() + Send>>);

impl FarHost {
    /// Moves the calling thread into a namespace of its own as well, and connects both; `None` where privileges are
    /// missing.
    fn connect() -> Option<Self> {
        if let Err(error) = namespace::leave_network() {
            println!("not tested: a network namespace of our own: {error}");
            return None;
        }
        let (sender, receiver) = channel::<Box<dyn FnOnce() + Send>>();
        std::thread::spawn(move || {
            for work in receiver {
                work();
            }
        });
        let host = Self(sender);
        let thread = host.run(|| {
            namespace::leave_network().unwrap();
            process::thread_id().to_string()
        });
        ip(&["link", "add", "near", "type", "veth", "peer", "far"]);
        ip(&["link", "set", "far", "netns", &thread]);
        settle("near", NEAR);
        host.run(|| settle("far", FAR));
        Some(host)
    }

    /// Runs something on that host.
    fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = channel();
        let work = move || sender.send(work()).unwrap();
        self.0.send(Box::new(work)).unwrap();
        receiver.recv().unwrap()
    }
}

fn settle(name: &str, addresses: [&str; 2]) {
    let [v4, v6] = addresses;
    ip(&["address", "add", &format!("{v4}/24"), "dev", name]);
    ip(&["address", "add", &format!("{v6}/64"), "dev", name, "nodad"]);
    ip(&["link", "set", "lo", "up"]);
    ip(&["link", "set", name, "up"]);
}

/// Serving port 80 does not affect ping, nor another port, whose segments may be of any size.
fn check_kernel(far: &FarHost) {
    for host in NEAR {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let target = listener.local_addr().unwrap();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            stream.write_all(&bytes).unwrap();
        });
        let answer = far.run(move || {
            let mut stream = TcpStream::connect(target).unwrap();
            let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| at.to_be_bytes()[2]).collect();
            stream.write_all(&bytes).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            answer == bytes
        });
        assert!(answer, "{target}");
        answering.join().unwrap();
        let pinged = far.run(move || {
            let mut ping = Command::new("ping");
            ping.args(["-c", "1", "-W", "5", host]);
            ping.output().map(|output| output.status.success())
        });
        match pinged {
            Ok(pinged) => assert!(pinged, "{host}"),
            Err(error) => {
                static ONCE: Once = Once::new();
                ONCE.call_once(|| println!("not tested: ping: {error}"));
            }
        }
    }
}

/// The kernel's answer to a connection to a port without listener; `None` if there is none in time.
fn refusal(far: &FarHost, target: SocketAddr, patience: Duration) -> Option<ErrorKind> {
    far.run(move || {
        let asked = TcpStream::connect_timeout(&target, patience);
        asked.err().map(|error| error.kind())
    })
}

/// Timeout where an answer is certain, even on a busy machine.
const LONG: Duration = Duration::from_secs(10);

/// Timeout where no answer is expected.
const SHORT: Duration = Duration::from_millis(300);

/// Waits until an interface has no program: a closed descriptor may be duplicated in a child that another test has just
/// forked, until that executes its program.
fn wait_until_free(interface: u32) {
    let mut left = attached::describe(interface);
    for _ in 0..1000 {
        if left.is_none() {
            break;
        }
        // No descriptors: waits for the time alone.
        let _ = descriptor::wait_readable(&[], Some(Duration::from_millis(1)));
        left = attached::describe(interface);
    }
    assert_eq!(left, None);
}

fn serve(table: &Table, protocol: Protocol, port: u16) {
    for any in ["0.0.0.0", "::"] {
        let address = SocketAddr::new(any.parse().unwrap(), port);
        table.serve(Service { address, protocol }, true);
    }
    let addresses: Vec<IpAddr> = NEAR.iter().map(|near| near.parse().unwrap()).collect();
    assert_eq!(table.set_addresses(&addresses), 0);
}

/// A socket for the served port; the test does not read from it.
fn socket_at(index: u32) -> OwnedFd {
    let options = setup::xsk_options(1500, Copying::AsDriverCan);
    let memory = setup::memory(&options, Pages::Huge).unwrap().memory;
    setup::socket(index, 0, &memory, &options).unwrap()
}

#[test]
fn the_kernel_keeps_serving_what_the_program_passes() {
    let Some(far) = FarHost::connect() else {
        return;
    };
    let index = interface::index("near").unwrap();
    for mode in [Mode::Native, Mode::Generic] {
        check_kernel(&far);
        let steering = Steering::attach(index, 1, WantedMode::Only(mode)).unwrap();
        assert_eq!(steering.mode(), mode);
        assert!(steering.fallback().is_none());
        let rules = steering.rules();
        let table = rules.table().unwrap();
        check_kernel(&far);
        serve(&table, Protocol::TCP, 80);
        serve(&table, Protocol::UDP, 80);
        check_kernel(&far);
        let targets = NEAR.map(|near| SocketAddr::new(near.parse().unwrap(), 80));
        // Without a socket the frame passes, and the kernel answers.
        let refused = Some(ErrorKind::ConnectionRefused);
        let answers = targets.map(|target| refusal(&far, target, LONG));
        assert_eq!(answers, [refused; 2]);
        let claimed = table.counters();
        assert_eq!((claimed.unclaimed, claimed.redirected), (2, 0));
        // With a socket that is not read, as in a stopped process, there is no answer.
        let socket = socket_at(index);
        rules.set_socket(0, 0, socket.as_fd()).unwrap();
        let silence = Some(ErrorKind::TimedOut);
        let answers = targets.map(|target| refusal(&far, target, SHORT));
        assert_eq!(answers, [silence; 2]);
        far.run(move || {
            let sender = UdpSocket::bind("0.0.0.0:0").unwrap();
            sender.send_to(b"ours", targets[0]).unwrap();
        });
        check_kernel(&far);
        let counters = table.counters();
        assert!(counters.redirected >= 3, "{counters:?}");
        let others = (counters.unclaimed, counters.malformed, counters.fragments);
        assert_eq!(others, (2, 0, 0), "{counters:?}");
        drop(steering);
        wait_until_free(index);
        let counters = table.counters();
        let answers = targets.map(|target| refusal(&far, target, LONG));
        assert_eq!(answers, [refused; 2]);
        assert_eq!(table.counters(), counters);
    }
}

/// A child process, unaware of the link it holds; killed when the test ends.
struct Holder(Child);

impl Holder {
    fn of(link: OwnedFd) -> Self {
        let mut sleep = Command::new("sleep");
        Self(sleep.arg("60").stdout(Stdio::from(link)).spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        let number = self.0.id().to_string();
        let sent = Command::new("kill").args([name, &number]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_program_is_detached_when_its_holder_is_killed() {
    let Some(far) = FarHost::connect() else {
        return;
    };
    let index = interface::index("near").unwrap();
    let steering = Steering::attach(index, 1, WantedMode::Fastest).unwrap();
    let table = steering.rules().table().unwrap();
    serve(&table, Protocol(TCP), 80);
    let holder = Holder::of(steering.link().try_clone_to_owned().unwrap());
    drop(steering);
    let busy = Steering::attach(index, 1, WantedMode::Fastest).unwrap_err();
    let text = busy.to_string();
    let process = holder.0.id();
    let expected = format!("of process {process} (sleep)");
    assert!(text.contains("\"mill_steering\", number "), "{text}");
    assert!(text.ends_with(&expected), "{text}");
    holder.signal("-STOP");
    check_kernel(&far);
    holder.signal("-KILL");
    drop(holder);
    wait_until_free(index);
    check_kernel(&far);
    Steering::attach(index, 1, WantedMode::Fastest).unwrap();
}

#[test]
fn a_program_without_holder_is_named_too() {
    let Some(_far) = FarHost::connect() else {
        return;
    };
    let index = interface::index("near").unwrap();
    assert_eq!(attached::describe(index), None);
    let first = Steering::attach(index, 1, WantedMode::Only(Mode::Generic)).unwrap();
    // The modes exclude each other.
    for wanted in [
        WantedMode::Fastest,
        WantedMode::Only(Mode::Native),
        WantedMode::Only(Mode::Generic),
    ] {
        let busy = Steering::attach(index, 1, wanted).unwrap_err();
        assert!(matches!(busy, SteeringError::Busy(Some(_))), "{busy}");
    }
    drop(first);
    wait_until_free(index);
}

#[test]
fn generic_mode_is_used_where_the_driver_refuses() {
    let Some(_far) = FarHost::connect() else {
        return;
    };
    let index = interface::index("lo").unwrap();
    let steering = Steering::attach(index, 1, WantedMode::Fastest).unwrap();
    assert_eq!(steering.mode(), Mode::Generic);
    let fallback = steering.fallback().unwrap().to_string();
    assert!(
        fallback.starts_with("bpf(BPF_LINK_CREATE): Operation not supported"),
        "{fallback}"
    );
    drop(steering);
    let refused = Steering::attach(index, 1, WantedMode::Only(Mode::Native)).unwrap_err();
    assert!(
        matches!(refused, SteeringError::NotInDriver(_)),
        "{refused}"
    );
    let nowhere = Steering::attach(4_000_000, 1, WantedMode::Fastest).unwrap_err();
    assert!(matches!(nowhere, SteeringError::Refused(_)), "{nowhere}");
}
