//! Overload: floods of SYNs from unused addresses. Connections go on, new ones are made, and the rest of the machine is
//! not affected.

use crate::client::Client;
use crate::namespace::has;
use crate::others::{Echo, Load, converse, the_rest_is_undisturbed};
use crate::server::{Site, wait_for};
use crate::soak::resident_kib;
use crate::topology::{HOSTS, Topology, between, serve};
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// Sends SYNs for so many seconds, as fast as one processor makes them; prints how many.
const SENDER: &str = "
import random, socket, struct, sys, time
target, seconds = socket.inet_aton('10.50.0.1'), float(sys.argv[1])
def checksum(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff
def syn():
    source = bytes([10, 50, 0, random.randrange(100, 250)])
    head = struct.pack('!HHIIBBHHH', random.randrange(1024, 65536), 80, random.getrandbits(32), 0, 0x60, 2, 64240, 0, 0)
    option = struct.pack('!BBH', 2, 4, 1460)
    pseudo = source + target + struct.pack('!BBH', 0, 6, 24)
    head = head[:16] + struct.pack('!H', checksum(pseudo + head + option)) + head[18:]
    return struct.pack('!BBHHHBBH', 0x45, 0, 44, 0, 0, 64, 6, 0) + source + target + head + option
syns = [syn() for _ in range(20000)]
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
print('begins', flush=True)
sent, end = 0, time.monotonic() + seconds
while time.monotonic() < end:
    for packet in random.sample(syns, 500):
        try:
            s.sendto(packet, ('10.50.0.1', 0))
            sent += 1
        except OSError:
            pass
print(sent)
";

/// A running flood.
struct Flood(Child);

impl Flood {
    /// The caller is in the clients' namespace.
    fn start(seconds: u32) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", SENDER, &seconds.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut flood = Self(child.unwrap());
        let mut line = [0; 7];
        flood
            .0
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut line)
            .unwrap();
        flood
    }

    fn is_over(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// How many it has sent when it ends.
    fn sent(mut self) -> u64 {
        let mut text = String::new();
        let out = self.0.stdout.as_mut().unwrap();
        out.read_to_string(&mut text).unwrap();
        text.trim().parse().unwrap()
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_possible() -> bool {
    let is_possible = has("python3") && has("wrk");
    if !is_possible {
        println!("not tested: there is no python3 or no wrk");
    }
    is_possible
}

fn fresh(topology: &Topology) -> Client {
    let address = format!("{}:80", HOSTS[0]).parse().unwrap();
    topology.at_client(|| Client::connect(address).unwrap())
}

#[test]
fn connections_go_on_and_new_ones_are_made_in_a_flood_of_syns() {
    if !is_possible() {
        return;
    }
    between(1500, |topology| {
        let echo = Echo::start();
        let mut kept = topology.at_client(|| HOSTS.map(|host| echo.connect(host)));
        let site = Site::new();
        let server = serve(&site);
        let mut client = fresh(topology);
        let worker = server.worker();
        let before = resident_kib(worker);
        let load = topology.at_client(|| Load::start(2));
        let mut flood = topology.at_client(|| Flood::start(2));
        let mut rounds = 0;
        while !flood.is_over() {
            let answer = client.get("/");
            let answer = answer.unwrap_or_else(|error| panic!("{error} {}", site.error_log()));
            assert_eq!(answer.content, b"hello\n");
            assert_eq!(fresh(topology).get("/").unwrap().content, b"hello\n");
            topology.at_client(|| kept.iter_mut().for_each(converse));
            rounds += 1;
        }
        let sent = flood.sent();
        println!("{sent} SYNs, {rounds} rounds beside them");
        // Far more than the maximum of handshakes in progress.
        assert!(sent > 5_000 && rounds > 0);
        let report = load.report();
        assert!(report.contains("Requests/sec"), "{report}");
        let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
        assert!(!has_errors, "{report}");
        let grown = resident_kib(worker).saturating_sub(before);
        assert!(grown < 32 << 10, "{grown} KiB more than before");
        assert_eq!(server.worker(), worker);
        the_rest_is_undisturbed(topology, &mut kept);
    });
}

#[test]
fn a_flood_to_a_stopped_server_disturbs_no_other_traffic() {
    if !is_possible() {
        return;
    }
    between(1500, |topology| {
        let echo = Echo::start();
        let mut kept = topology.at_client(|| HOSTS.map(|host| echo.connect(host)));
        let site = Site::new();
        let server = serve(&site);
        let mut client = fresh(topology);
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        let signal = |name: &str| {
            let command = format!("kill -{name} -{}", server.pid().number());
            crate::namespace::text_of("sh", &["-c", &command]);
        };
        signal("STOP");
        let mut flood = topology.at_client(|| Flood::start(1));
        while !flood.is_over() {
            // Echo requests may be dropped while a queue is full, and are not repeated.
            topology.at_client(|| {
                kept.iter_mut().for_each(converse);
                HOSTS
                    .iter()
                    .for_each(|host| converse(&mut echo.connect(host)));
            });
        }
        let sent = flood.sent();
        signal("CONT");
        assert!(sent > 1_000, "{sent}");
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        wait_for(|| fresh(topology).get("/").is_ok());
        the_rest_is_undisturbed(topology, &mut kept);
    });
}
