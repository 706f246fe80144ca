//! Every kind of link carries the same conversations: with the kernel's TCP at the other end, or, where a link has no kernel behind it,
//! with our stack under the same client.

use crate::namespace::{COMMAND_TIME_MAX, has, text_of};
use crate::server::{Server, Site, wait_for};
use crate::topology::{
    BRIDGED, HOSTS, JOIN_BRIDGE, LISTENING, STACK, Topology, between, ip, kernel_connections,
    serve_on,
};
use mill_sys::signal::Signal;
use std::fs;
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// A way between a server on our stack and its clients. `SITE` in a stack stands for the folder of the test.
struct Link {
    stack: &'static str,
    /// The clients' stack; empty for the kernel's.
    far: &'static str,
    /// What the server's interface is made into before and after the server has started.
    before: fn(&Topology),
    after: &'static str,
    needs: &'static [&'static str],
}

const ADDRESSES: &str = "address=10.50.0.1/24,address=fd50::1/64";
const FAR_ADDRESSES: &str = "address=10.50.0.2/24,address=fd50::2/64";
/// DPDK's libraries come with its programs.
const DPDK: &[&str] = &["dpdk-testpmd", "ethtool"];

const LINKS: [Link; 14] = [
    Link {
        stack: STACK,
        far: "",
        before: |_| {},
        after: "true",
        needs: &[],
    },
    Link {
        stack: "af_xdp:mill0,mode=generic,offload=off",
        far: "",
        before: |_| {},
        after: "true",
        needs: &[],
    },
    Link {
        stack: "af_xdp:mill0,mode=generic",
        far: "",
        before: |_| {},
        after: "true",
        needs: &[],
    },
    Link {
        stack: "af_xdp:mill0,vlan=10",
        far: "af_xdp:mill1,vlan=10",
        before: |_| {},
        after: "true",
        needs: &[],
    },
    Link {
        stack: "memif:SITE/memif.sock,role=master,vlan=10,ADDRESSES",
        far: "memif:SITE/memif.sock,role=slave,vlan=10,FAR",
        before: without_addresses,
        after: "true",
        needs: &[],
    },
    Link {
        stack: BRIDGED,
        far: "",
        before: Topology::bridge,
        after: JOIN_BRIDGE,
        needs: &[],
    },
    Link {
        stack: "memif:SITE/memif.sock,role=master,ADDRESSES",
        far: "memif:SITE/memif.sock,role=slave,FAR",
        before: without_addresses,
        after: "true",
        needs: &[],
    },
    Link {
        stack: "memif:SITE/memif.sock,role=master,rings=2,ADDRESSES",
        far: "memif:SITE/memif.sock,role=slave,rings=2,FAR",
        before: without_addresses,
        after: "true",
        needs: &[],
    },
    Link {
        stack: "dpdk:vdev=net_af_packet0,iface=mill0,bridge=on,ADDRESSES",
        far: "",
        before: for_dpdk,
        after: "true",
        needs: DPDK,
    },
    Link {
        stack: "dpdk:vdev=net_af_xdp0,iface=mill0,bridge=on,ADDRESSES",
        far: "",
        before: for_dpdk,
        after: "true",
        needs: DPDK,
    },
    Link {
        stack: "dpdk:vdev=net_tap0,iface=mill2,bridge=on,ADDRESSES",
        far: "",
        before: Topology::bridge,
        after: "ip link set mill2 up && ip link set mill2 master br0",
        needs: DPDK,
    },
    Link {
        stack: "dpdk:vdev=net_af_packet0,iface=mill0,ADDRESSES",
        far: "",
        before: for_dpdk,
        after: "true",
        needs: DPDK,
    },
    Link {
        stack: "dpdk:vdev=net_tap0,iface=mill2,ADDRESSES",
        far: "",
        before: Topology::bridge,
        after: "ip link set mill2 up && ip link set mill2 master br0",
        needs: DPDK,
    },
    Link {
        stack: "dpdk:vdev=net_tap0,iface=mill2,offload=off,polling=sleep-spin,ADDRESSES",
        far: "",
        before: Topology::bridge,
        after: "ip link set mill2 up && ip link set mill2 master br0",
        needs: DPDK,
    },
];

impl Link {
    /// A server with a worker for each ring.
    fn serve(&self, site: &Site, stack: &str) -> Server {
        if !self.stack.contains("rings=2") {
            return serve_on(site, stack);
        }
        let conf = site.configure("worker_processes 2;", LISTENING);
        Server::configured(site, &conf, &["--stack", stack])
    }
}

/// The kernel is at neither end.
fn without_addresses(topology: &Topology) {
    ip("address flush dev mill0");
    topology.at_client(|| ip("address flush dev mill1"));
}

/// The interface is the port's, and what the client's kernel sends is complete, as on a wire.
fn for_dpdk(topology: &Topology) {
    ip("address flush dev mill0");
    let off = ["-K", "mill1", "tx", "off", "tso", "off", "gso", "off"];
    topology.at_client(|| text_of("ethtool", &off));
}

/// The clients' end.
struct Far<'a> {
    site: &'a Site,
    stack: String,
}

impl Far<'_> {
    fn output(&self, words: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.arg(COMMAND_TIME_MAX);
        if !self.stack.is_empty() {
            command.args([BINARY, "run", "--stack", &self.stack, "--"]);
        }
        command.args(["curl", "-sS"]).args(words);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// What curl prints, which has to succeed.
    fn curl(&self, words: &[&str]) -> Vec<u8> {
        let Output {
            status,
            stdout,
            stderr,
        } = self.output(words);
        let said = String::from_utf8_lossy(&stderr);
        assert!(
            status.success(),
            "{words:?} over {}: {status} {said}",
            self.stack
        );
        stdout
    }

    fn text(&self, words: &[&str]) -> String {
        String::from_utf8(self.curl(words)).unwrap()
    }

    fn large(&self) -> Vec<u8> {
        fs::read(self.site.path("large.bin")).unwrap()
    }
}

/// A conversation with the server at this URL, which ends in `/`.
type Conversation = fn(&Far<'_>, &str);

const CONVERSATIONS: [Conversation; 7] = [
    requests_share_a_connection,
    each_request_has_a_connection,
    a_large_file_comes_whole,
    a_part_of_a_file_comes,
    several_large_files_come_at_once,
    a_body_is_read_to_its_end,
    a_client_leaves,
];

fn requests_share_a_connection(far: &Far<'_>, url: &str) {
    let missing = format!("{url}missing");
    let count = "%{num_connects}:%{http_code} ";
    let one = ["-o", "/dev/null", url];
    let words = [
        &["-w", count][..],
        &one,
        &one,
        &["-o", "/dev/null", &missing],
        &["-I", url],
    ];
    let text = far.text(&words.concat());
    assert!(text.starts_with("1:200 0:200 0:404 "), "{text}");
    assert!(text.ends_with("0:200 "), "{text}");
}

fn each_request_has_a_connection(far: &Far<'_>, url: &str) {
    let one = ["-o", "/dev/null", url];
    let close = [
        "-H",
        "Connection: close",
        "-w",
        "%{num_connects}:%{http_code} ",
    ];
    let words = [&close[..], &one.repeat(10)];
    assert_eq!(far.text(&words.concat()), "1:200 ".repeat(10));
}

fn a_large_file_comes_whole(far: &Far<'_>, url: &str) {
    let got = far.curl(&["-f", &format!("{url}large.bin")]);
    assert!(got == far.large(), "{} bytes from {url}", got.len());
}

fn a_part_of_a_file_comes(far: &Far<'_>, url: &str) {
    let got = far.curl(&["-f", "-r", "999999-1200001", &format!("{url}large.bin")]);
    assert!(
        got == far.large()[999_999..=1_200_001],
        "{} bytes from {url}",
        got.len()
    );
}

fn several_large_files_come_at_once(far: &Far<'_>, url: &str) {
    let url = format!("{url}large.bin");
    let names = [0, 1, 2, 3].map(|number| far.site.path(&format!("got.{number}")));
    let mut words = vec!["-f", "-Z"];
    for name in &names {
        words.extend(["-o", name.to_str().unwrap(), &url]);
    }
    far.curl(&words);
    for name in &names {
        assert!(fs::read(name).unwrap() == far.large(), "{url}");
        fs::remove_file(name).unwrap();
    }
}

fn a_body_is_read_to_its_end(far: &Far<'_>, url: &str) {
    let body = far.site.path("body");
    fs::write(&body, "x".repeat(900_000)).unwrap();
    let body = format!("@{}", body.display());
    let code = far.text(&[
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "--data-binary",
        &body,
        url,
    ]);
    assert_eq!(code, "405", "{url}");
}

fn a_client_leaves(far: &Far<'_>, url: &str) {
    let slow = [
        "-o",
        "/dev/null",
        "--limit-rate",
        "100k",
        "--max-time",
        "0.3",
    ];
    let words = [&slow[..], &[&format!("{url}large.bin")]];
    let timed_out = Some(28);
    assert_eq!(
        far.output(&words.concat()).status.code(),
        timed_out,
        "{url}"
    );
    assert_eq!(far.text(&[url]), "hello\n");
}

fn converse(link: &Link) {
    if let Some(missing) = link.needs.iter().find(|name| !has(name)) {
        println!("{} not tested: there is no {missing}", link.stack);
        return;
    }
    between(1500, |topology| {
        (link.before)(topology);
        let site = Site::new();
        let folder = site.path("").display().to_string();
        let stack = |text: &str| {
            let text = text.replace("SITE", folder.trim_end_matches('/'));
            text.replace("ADDRESSES", ADDRESSES)
                .replace("FAR", FAR_ADDRESSES)
        };
        let server = link.serve(&site, &stack(link.stack));
        text_of("sh", &["-c", link.after]);
        let far = Far {
            site: &site,
            stack: stack(link.far),
        };
        topology.at_client(|| {
            for host in HOSTS {
                let url = format!("http://{host}/");
                wait_for(|| far.output(&["-f", "-m", "2", &url]).status.success());
                CONVERSATIONS.iter().for_each(|talk| talk(&far, &url));
            }
        });
        assert_eq!(kernel_connections(80), "", "{}", link.stack);
        // A memif would wait for clients that have gone.
        server.end(Signal::Terminate);
    });
}

#[test]
fn they_are_held_over_af_xdp() {
    LINKS[..3].iter().for_each(converse);
}

#[test]
fn they_are_held_in_virtual_networks() {
    LINKS[3..5].iter().for_each(converse);
}

#[test]
fn they_are_held_over_a_tap_device_and_over_a_memif() {
    LINKS[5..8].iter().for_each(converse);
}

#[test]
fn they_are_held_over_ports_of_dpdk_behind_a_bridge() {
    LINKS[8..11].iter().for_each(converse);
}

#[test]
fn they_are_held_over_ports_of_dpdk() {
    LINKS[11..].iter().for_each(converse);
}
