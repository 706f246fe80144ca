//! Paths with a smaller MTU than the interface: behind a router whose next link has an MTU of 1400 bytes, which it
//! reports or does not.

use crate::namespace::{get, has, text_of};
use crate::nginx::Nginx;
use crate::server::{Server, Site, wait_for};
use crate::topology::{FAR, INTERFACE, STACK, ip, move_to};
use mill_sys::{clock, namespace};
use std::fs::File;
use std::net::IpAddr;
use std::time::Duration;

/// The server's namespace, in which the test's thread is; a router; and the client's namespace behind it.
struct Path {
    server: File,
    router: File,
    client: File,
}

/// The router's reaction to packets that are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Router {
    Tells,
    /// It drops its ICMP messages to the server.
    IsSilent,
}

/// The MTU of the link behind the router. The client does not know it: its own end has 1500.
const NARROW: u16 = 1400;

const ADDRESSES: [&str; 2] = ["10.50.0.1", "fd50::1"];

fn here() -> File {
    File::open("/proc/thread-self/ns/net").unwrap()
}

fn elsewhere(back: &File) -> File {
    namespace::leave_network().unwrap();
    ip("link set lo up");
    let made = here();
    namespace::enter_network(back).unwrap();
    made
}

impl Path {
    fn lay(router_is: Router, queues: u32) -> Self {
        let server = here();
        let (router, client) = (elsewhere(&server), elsewhere(&server));
        let path = Self {
            server,
            router,
            client,
        };
        let queues = format!("numrxqueues {queues} numtxqueues {queues}");
        ip(&format!(
            "link add {INTERFACE} {queues} type veth peer name {FAR} {queues}"
        ));
        move_to(FAR, &path.router);
        ip("address add 10.50.0.1/24 dev mill0");
        ip("address add fd50::1/64 dev mill0 nodad");
        ip("link set mill0 up");
        ip("route add default via 10.50.0.254");
        ip("-6 route add default via fd50::fe");
        path.within(&path.router, || path.lay_router(router_is));
        path.within(&path.client, || {
            ip("address add 10.60.0.2/24 dev mill3");
            ip("address add fd60::2/64 dev mill3 nodad");
            ip("link set mill3 up");
            ip("route add default via 10.60.0.254");
            ip("-6 route add default via fd60::fe");
        });
        path
    }

    fn lay_router(&self, router_is: Router) {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        ip("link add mill2 type veth peer name mill3");
        move_to("mill3", &self.client);
        for line in [
            "address add 10.50.0.254/24 dev mill1",
            "address add fd50::fe/64 dev mill1 nodad",
            "link set mill1 up",
            "address add 10.60.0.254/24 dev mill2",
            "address add fd60::fe/64 dev mill2 nodad",
            "link set mill2 up",
        ] {
            ip(line);
        }
        ip(&format!("link set mill2 mtu {NARROW}"));
        if router_is == Router::IsSilent {
            // Its own ICMP packets have no route; ARP works without routes.
            ip("rule add iif lo ipproto icmp blackhole");
            ip("-6 rule add iif lo ipproto ipv6-icmp blackhole");
        }
    }

    fn within<T>(&self, there: &File, run: impl FnOnce() -> T) -> T {
        namespace::enter_network(there).unwrap();
        let result = run();
        namespace::enter_network(&self.server).unwrap();
        result
    }

    /// Waits until the server is reached: IPv6 on a new interface may take some seconds on a busy machine.
    fn wait(&self) {
        for address in ADDRESSES {
            let url = url(address, "index.html");
            wait_for(|| self.within(&self.client, || get(&url)).is_some());
        }
    }

    /// Fetches a file on a connection of its own and checks it; returns the duration.
    fn fetch(&self, site: &Site, address: &str, name: &str) -> Duration {
        let expected = std::fs::read(site.path(name)).unwrap();
        let fetched = site.path("fetched");
        let to = fetched.to_str().unwrap();
        let url = url(address, name);
        let begin = clock::monotonic();
        self.within(&self.client, || {
            text_of("curl", &["-sSf", "-m25", "-o", to, &url])
        });
        let took = clock::monotonic() - begin;
        assert!(std::fs::read(&fetched).unwrap() == expected, "{url}");
        took
    }
}

fn url(address: &str, name: &str) -> String {
    match address.parse().unwrap() {
        IpAddr::V4(address) => format!("http://{address}/{name}"),
        IpAddr::V6(address) => format!("http://[{address}]/{name}"),
    }
}

/// A server on the stack behind such a router, with as many workers as its interface has queues. The queue of a frame
/// is chosen at the router's end: ICMP about one worker's connection may arrive at another.
fn behind(router_is: Router, queues: u32, test: impl FnOnce(&Path, &Site) + Send) {
    crate::namespace::in_namespace(|| {
        let path = Path::lay(router_is, queues);
        let site = site();
        let main = format!("worker_processes {queues};");
        let conf = site.configure(&main, "server { listen 80; listen [::]:80; }");
        let _server = Server::configured(&site, &conf, &["--stack", STACK]);
        path.wait();
        test(&path, &site);
    });
}

/// Files of 9450 bytes, 12 MB and 50 MB.
fn site() -> Site {
    let site = Site::new();
    std::fs::write(site.path("short.bin"), vec![b'm'; 9450]).unwrap();
    let words = (0..12_500_000_u32).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes());
    std::fs::write(site.path("huge.bin"), words.collect::<Vec<u8>>()).unwrap();
    site
}

/// The times are printed, not judged: all files have to arrive.
fn fetch_all(path: &Path, site: &Site, what: &str) {
    for address in ADDRESSES {
        for name in ["short.bin", "short.bin", "large.bin", "huge.bin"] {
            let took = path.fetch(site, address, name);
            println!("{what}: {name} from {address} in {took:?}");
        }
    }
}

#[test]
fn files_arrive_behind_a_router_that_reports_its_next_mtu() {
    behind(Router::Tells, 1, |path, site| {
        fetch_all(path, site, "af_xdp, a router that tells");
    });
}

#[test]
fn files_arrive_behind_a_router_that_drops_large_packets_silently() {
    behind(Router::IsSilent, 1, |path, site| {
        fetch_all(path, site, "af_xdp, a router that is silent");
    });
}

/// Connections of both workers.
#[test]
fn files_arrive_behind_a_router_from_every_queue() {
    for router_is in [Router::Tells, Router::IsSilent] {
        behind(router_is, 2, |path, site| {
            for address in ADDRESSES {
                for _ in 0..8 {
                    let took = path.fetch(site, address, "short.bin");
                    println!("two queues, {router_is:?}: short.bin from {address} in {took:?}");
                }
            }
        });
    }
}

/// The kernel's own TCP behind the same router, for comparison with our times.
#[test]
fn nginx_is_reached_behind_the_same_router() {
    if !has("nginx") {
        println!("not tested, since there is no nginx");
        return;
    }
    crate::namespace::in_namespace(|| {
        let path = Path::lay(Router::Tells, 1);
        let site = site();
        let listening = "server { listen 80; listen [::]:80; }";
        let _nginx = Nginx::start(&site, listening);
        path.wait();
        fetch_all(&path, &site, "nginx, a router that tells");
    });
}
