//! Devices in network namespaces, and what prevents making them.

use super::*;
use crate::any::AnyLink;
use crate::attach::Attached;
use mill_stack::link::{Burst, Link, ReceivedChecksum};
use mill_sys::namespace;
use std::net::{TcpStream, UdpSocket};
use std::process::Command;

/// Runs a test on a thread in a network namespace that vanishes with it. Without the right to make one the test is
/// skipped.
fn in_namespace(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if namespace::leave_network().is_ok() {
                test();
            }
        });
        thread.join().unwrap();
    });
}

/// The next frame of this EtherType; others, which the kernel sends by itself, are skipped.
fn next_frame(link: &mut AnyLink, ethertype: [u8; 2]) -> (Vec<u8>, ReceivedChecksum) {
    loop {
        let mut burst = Burst::new(1);
        link.receive(&mut burst);
        let received = *burst.as_slice().first().expect("a frame");
        let frame = link.frame(received.id).to_vec();
        link.release(received.id);
        if frame.get(12..14) == Some(&ethertype) {
            return (frame, received.checksum);
        }
    }
}

/// Answers this machine's ARP request for the address 10.77.0.2.
fn answer_arp(link: &mut AnyLink) {
    let (request, _) = next_frame(link, [8, 6]);
    let (theirs, ours) = (request[6..12].to_vec(), link.properties().address);
    let mut answer = [&theirs[..], &ours, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &ours].concat();
    answer.extend_from_slice(&[10, 77, 0, 2]);
    answer.extend_from_slice(&theirs);
    answer.extend_from_slice(&[10, 77, 0, 1]);
    link.reserve(answer.len()).unwrap().copy_from_slice(&answer);
    link.transmit(answer.len(), mill_stack::link::Offload::default());
    link.flush();
}

fn attach(text: &str) -> Result<AnyLink, AttachError> {
    let specification = Specification::parse(text).unwrap();
    let attached = Attached::make(&specification)?.attachments.remove(0);
    let second = attached.duplicate().unwrap();
    drop(attached);
    Ok(second
        .link(&specification, |trouble| panic!("{trouble:?}"))
        .unwrap())
}

const TEXT: &str = "tap:mill0,address=10.77.0.2/24,host=10.77.0.1/24";

#[test]
fn a_device_is_there_with_its_addresses_until_the_link_goes() {
    in_namespace(|| {
        let link = attach(&format!("{TEXT},mtu=9000,host=10.77.0.9/24")).unwrap();
        let has = |address: &str| {
            let found = interface::addresses().unwrap();
            found.iter().any(|one| one.address.to_string() == address)
        };
        assert!(has("10.77.0.1") && has("10.77.0.9") && !has("10.77.0.2"));
        let properties = link.properties();
        assert_eq!(
            (properties.mtu, properties.segment_bytes_max),
            (9000, 65535)
        );
        let theirs = interface::hardware_address("mill0").unwrap();
        assert_ne!(properties.address, theirs);
        let busy = attach("tap:mill0,address=10.78.0.2/24").unwrap_err();
        assert_eq!(
            busy.to_string(),
            "the TAP device \"mill0\" could not be made: there is an interface \"mill0\" already"
        );
        let in_use = attach("tap:mill1,address=10.77.0.1/24").unwrap_err();
        assert_eq!(
            in_use.to_string(),
            "10.77.0.1 can't be the stack's: mill0 of this machine has it"
        );
        let text = "tap:mill1,address=10.77.0.3/24,host=10.77.0.4/24";
        let elsewhere = attach(text).unwrap_err();
        assert_eq!(
            elsewhere.to_string(),
            "10.77.0.3 can't be the stack's: this machine looks for it behind mill0, which has 10.77.0.1/24; \
             choose a network that is not in use"
        );
        assert!(interface::index("mill1").is_err(), "nothing is left behind");
        // A more specific network takes precedence, and a bridge may have the stack's network.
        drop(attach("tap:mill1,address=10.77.0.3/24,host=10.77.0.4/25").unwrap());
        drop(attach("tap:mill1,address=10.77.0.3/24").unwrap());
        drop(link);
        assert!(interface::index("mill0").is_err());
    });
}

#[test]
fn checksums_are_left_out_only_with_offload() {
    for (more, expected) in [
        ("", ReceivedChecksum::Verified),
        (",offload=off", ReceivedChecksum::Unverified),
        (",loss=0.0001%", ReceivedChecksum::Unverified),
    ] {
        in_namespace(|| {
            let mut link = attach(&format!("{TEXT}{more}")).unwrap();
            let socket = UdpSocket::bind("10.77.0.1:0").unwrap();
            socket.send_to(b"data", "10.77.0.2:9").unwrap();
            answer_arp(&mut link);
            let (datagram, checksum) = next_frame(&mut link, [8, 0]);
            assert_eq!(checksum, expected, "{more}");
            let mut whole = datagram.clone();
            crate::checksum::complete(&mut whole);
            let is_whole = expected == ReceivedChecksum::Unverified;
            assert_eq!(datagram == whole, is_whole, "{more}");
        });
    }
}

#[test]
fn tcpdump_finds_whole_packets_in_the_file() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        return;
    }
    let path = std::env::temp_dir().join(format!("mill-attach-{}.pcap", std::process::id()));
    let text = format!("{TEXT},pcap={}", path.display());
    in_namespace(|| {
        let mut link = attach(&text).unwrap();
        let waiting = std::thread::spawn(|| {
            let target = "10.77.0.2:80".parse().unwrap();
            TcpStream::connect_timeout(&target, Duration::from_millis(300))
        });
        assert!(waiting.join().unwrap().is_err());
        answer_arp(&mut link);
        next_frame(&mut link, [8, 0]);
    });
    let output = Command::new("tcpdump").args(["-nvvr"]).arg(&path).output();
    let written = std::fs::remove_file(&path);
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    if namespace_is_allowed() {
        written.unwrap();
        assert!(output.contains("Reply 10.77.0.2 is-at"), "{output}");
        assert!(
            output.contains("10.77.0.2.80: Flags [S], cksum 0x"),
            "{output}"
        );
        assert!(output.contains("(correct)"), "{output}");
        assert!(!output.contains("incorrect"), "{output}");
    }
}

fn namespace_is_allowed() -> bool {
    std::thread::spawn(|| namespace::leave_network().is_ok())
        .join()
        .unwrap()
}

#[test]
fn the_two_ends_have_different_unicast_addresses() {
    assert_eq!(address_beside([2, 1, 2, 3, 4, 5]), [2, 1, 2, 3, 4, 4]);
    assert_eq!(address_beside([0xff; 6]), [0xfe, 255, 255, 255, 255, 254]);
}

#[test]
fn failures_to_make_a_device_are_sentences() {
    let check = |call, code, expected: &str| {
        let error = io::Error::from_raw_os_error(code);
        let message = not_created("ms0", &TapError { call, error }).to_string();
        let start = "the TAP device \"ms0\" could not be made: ";
        assert_eq!(message.strip_prefix(start), Some(expected));
    };
    let open = "open(/dev/net/tun)";
    check(
        open,
        ENOENT,
        "this machine has no TAP devices (no /dev/net/tun); \"modprobe tun\" may help",
    );
    check(open, EACCES, "/dev/net/tun may not be opened; root may");
    let set = "ioctl(TUNSETIFF)";
    check(
        set,
        EPERM,
        "making network devices takes the right CAP_NET_ADMIN, which root has",
    );
    check(set, EBUSY, "there is an interface \"ms0\" already");
    check(set, 22, "ioctl(TUNSETIFF): Invalid argument (os error 22)");
}

#[test]
fn an_address_of_this_machine_is_refused() {
    let text = "tap:ms0,address=10.77.0.2/24";
    let mut specification = Specification::parse(text).unwrap();
    for prefix in &mut specification.addresses {
        prefix.address = "127.0.0.1".parse().unwrap();
    }
    let message = Attached::make(&specification).unwrap_err().to_string();
    assert_eq!(
        message,
        "127.0.0.1 can't be the stack's: lo of this machine has it"
    );
}
