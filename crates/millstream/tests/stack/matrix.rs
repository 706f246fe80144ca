//! Both families, sizes of frames and options, both ways, as client and as server.

use crate::linux;
use crate::namespace::{has, in_namespace, output_of, set_ipv4};
use crate::ours::{Ours, Transfer};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Mutex;

/// An option set on one of the two sides, and ss's output for it.
struct Options {
    /// Options of `--stack`.
    ours: &'static str,
    /// Below net.ipv4, and the value.
    linux: Option<(&'static str, &'static str)>,
    /// Words in ss's output …
    shown: &'static [&'static str],
    /// … and words not in it.
    hidden: &'static [&'static str],
}

const OPTIONS: &[Options] = &[
    Options {
        ours: "",
        linux: None,
        shown: &[" ts ", " sack ", " wscale:"],
        hidden: &[" ecn "],
    },
    Options {
        ours: ",timestamps=off",
        linux: None,
        shown: &[" sack ", " wscale:"],
        hidden: &[" ts "],
    },
    Options {
        ours: "",
        linux: Some(("tcp_timestamps", "0")),
        shown: &[" sack ", " wscale:"],
        hidden: &[" ts "],
    },
    Options {
        ours: ",sack=off",
        linux: None,
        shown: &[" ts ", " wscale:"],
        hidden: &[" sack "],
    },
    Options {
        ours: "",
        linux: Some(("tcp_sack", "0")),
        shown: &[" ts ", " wscale:"],
        hidden: &[" sack "],
    },
    Options {
        ours: ",window-scaling=off",
        linux: None,
        shown: &[" ts ", " sack "],
        hidden: &[" wscale:"],
    },
    Options {
        ours: "",
        linux: Some(("tcp_window_scaling", "0")),
        shown: &[" ts ", " sack "],
        hidden: &[" wscale:"],
    },
    // Linux requests; the stack accepts.
    Options {
        ours: "",
        linux: Some(("tcp_ecn", "1")),
        shown: &[" ts ", " sack ", " ecn ", " wscale:"],
        hidden: &[],
    },
    // The stack requests, and Linux accepts by default, which the capture shows: ss is only asked about a connection
    // that Linux has opened.
    Options {
        ours: ",ecn=ask,congestion=reno,offload=off",
        linux: None,
        shown: &[" ts ", " sack "],
        hidden: &[],
    },
];

/// One family and MTU with all options.
fn check(host: &str, own: &str, prefix_len: u8, mtu: u16) {
    for (number, options) in OPTIONS.iter().enumerate() {
        in_namespace(|| {
            if let Some((name, value)) = options.linux {
                set_ipv4(name, value);
            }
            // One capture of each family and size is enough.
            let path = std::env::temp_dir();
            let path = path.join(format!("mill-matrix-{}-{mtu}.pcap", std::process::id()));
            let pcap = if number == 0 || options.ours.contains("ecn") {
                format!(",pcap={}", path.display())
            } else {
                String::new()
            };
            let text = format!(
                "tap:mill0,address={own}/{prefix_len},host={host}/{prefix_len},mtu={mtu}{}{pcap}",
                options.ours
            );
            println!("{text} {:?}", options.linux);
            exchange(&text, host.parse().unwrap(), own.parse().unwrap(), options);
            if !pcap.is_empty() {
                check_capture(path.to_str().unwrap(), options);
                std::fs::remove_file(&path).unwrap();
            }
        });
    }
}

/// Linux connects to the stack and the stack to Linux, at the same time.
fn exchange(text: &str, host: IpAddr, own: IpAddr, options: &Options) {
    let transfer = Transfer {
        bytes: 1_000_000,
        seed: 11,
    };
    // Its address exists once the device does, so it binds the wildcard.
    let any: SocketAddr = if host.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    }
    .parse()
    .unwrap();
    let listener = TcpListener::bind(any).unwrap();
    let target = SocketAddr::new(host, listener.local_addr().unwrap().port());
    let answering = std::thread::spawn(move || linux::answer(&listener, transfer));
    let ours = Ours::start(text, transfer, vec![target]);
    let shown = Mutex::new(String::new());
    let asked = linux::ask(SocketAddr::new(own, 80), transfer, |peer| {
        *shown.lock().unwrap() = linux::look(peer);
    });
    assert_eq!(asked, Ok(()), "{text}");
    assert_eq!(ours.outcome(), Ok(()), "{text}");
    assert_eq!(ours.outcome(), Ok(()), "{text}");
    assert_eq!(answering.join().unwrap(), Ok(()), "{text}");
    check_figures(&shown.into_inner().unwrap(), options);
}

/// ss shows the negotiated options, and the figures of a clean link.
fn check_figures(shown: &str, options: &Options) {
    for word in options.shown {
        assert!(shown.contains(word), "no{word}in {shown}");
    }
    for word in options.hidden {
        assert!(!shown.contains(word), "{word}in {shown}");
    }
    // The least one: others are as long as either side was interrupted.
    let rtt_ms: f64 = number_behind(shown, " minrtt:").expect("a round trip");
    assert!(rtt_ms < 100.0, "{shown}");
    let cwnd: f64 = number_behind(shown, " cwnd:").expect("a congestion window");
    assert!(cwnd >= 2.0, "{shown}");
    // `retrans:NOW/ALL`; nothing is lost here.
    let retransmitted = shown.split("retrans:").nth(1).and_then(|rest| {
        let all = rest.split('/').nth(1)?;
        all.split_whitespace().next()?.parse::<u32>().ok()
    });
    assert!(retransmitted.unwrap_or(0) <= 2, "{shown}");
}

fn number_behind(text: &str, word: &str) -> Option<f64> {
    let rest = text.split(word).nth(1)?;
    let number: String = rest
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    number.parse().ok()
}

/// tcpdump understands every frame and finds no bad checksum.
fn check_capture(path: &str, options: &Options) {
    if !has("tcpdump") {
        return;
    }
    let output = output_of("tcpdump", &["-nvvr", path]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("(correct)"),
        "{text}"
    );
    // The client sets ECE and CWR in its SYN, the server ECE (RFC 3168 6.1.1).
    let negotiated = text.contains("Flags [SEW]") && text.contains("Flags [S.E]");
    assert_eq!(negotiated, options.ours.contains("ecn=ask"));
    for bad in [
        "incorrect",
        " bad ",
        "[bad",
        "malformed",
        "invalid",
        "truncated",
        "[|",
    ] {
        let line = text.lines().find(|line| line.contains(bad));
        assert_eq!(line, None, "{bad}");
    }
}

#[test]
fn ipv4_at_mtu_576() {
    check("10.77.0.1", "10.77.0.2", 24, 576);
}

#[test]
fn ipv4_at_mtu_1500() {
    check("10.77.0.1", "10.77.0.2", 24, 1500);
}

#[test]
fn ipv4_at_mtu_9000() {
    check("10.77.0.1", "10.77.0.2", 24, 9000);
}

#[test]
fn ipv6_at_mtu_1280() {
    check("fd00::1", "fd00::2", 64, 1280);
}

#[test]
fn ipv6_at_mtu_1500() {
    check("fd00::1", "fd00::2", 64, 1500);
}

#[test]
fn ipv6_at_mtu_9000() {
    check("fd00::1", "fd00::2", 64, 9000);
}

/// Sequence numbers of 2^32 bytes and more; `MILL_STACK_BYTES` says how many go each way.
#[test]
fn as_many_bytes_as_asked_for_go_both_ways() {
    let bytes = std::env::var("MILL_STACK_BYTES").ok();
    let transfer = Transfer {
        bytes: bytes.map_or(20_000_000, |bytes| bytes.parse().unwrap()),
        seed: 5,
    };
    in_namespace(|| {
        let text = "tap:mill0,address=10.77.0.2/24,host=10.77.0.1/24";
        let ours = Ours::start(text, transfer, Vec::new());
        assert_eq!(
            linux::ask("10.77.0.2:80".parse().unwrap(), transfer, |_| {}),
            Ok(())
        );
        assert_eq!(ours.outcome(), Ok(()));
    });
}
