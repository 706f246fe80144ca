//! `listen … ssl proxy_protocol` and HTTP/2 behind the header, with curl as client and nginx beside.

use crate::site::{Site, free_address, wait_for};
use crate::tls::{ECDSA, certify};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// A server with the same ports twice: one name is told the address by the header, the other one believes it.
struct Told {
    site: Site,
    /// `ssl`, `ssl http2` and `http2`, all with `proxy_protocol`.
    ports: [SocketAddr; 3],
}

const NGINX: &str = "/usr/sbin/nginx";

const TOLD: &str = "return 200 \"$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr \
                    $proxy_protocol_server_port $remote_addr $realip_remote_addr $server_protocol\";";

impl Told {
    /// Millstream, or nginx with the same configuration; `more` is a server block of the first name's.
    fn start(is_nginx: bool, more: &str) -> Self {
        let site = Site::new();
        if is_nginx {
            fs::remove_file(site.path("nginx")).unwrap();
            std::os::unix::fs::symlink(NGINX, site.path("nginx")).unwrap();
        }
        certify(&site, "a.example", &ECDSA);
        let ports = [(); 3].map(|()| free_address());
        let listening = format!(
            "listen {} ssl proxy_protocol; listen {} ssl http2 proxy_protocol; listen {} http2 proxy_protocol;
             ssl_certificate a.example.pem; ssl_certificate_key a.example.key;",
            ports[0], ports[1], ports[2]
        );
        site.configure(
            "",
            &format!(
                "server {{ {listening} server_name told; location = / {{ {TOLD} }} {more} }}
                 server {{ {listening} server_name believed; set_real_ip_from 127.0.0.0/8; real_ip_header proxy_protocol;
                 location = / {{ {TOLD} }} location = /allowed {{ allow 192.0.2.0/24; deny all; try_files /index.html =404; }} }}"
            ),
        );
        if is_nginx {
            site.start_other();
        } else {
            site.start();
        }
        for port in ports {
            wait_for("a listening socket", || TcpStream::connect(port).ok());
        }
        Self { site, ports }
    }

    /// What curl gets by each way, from these parts of a header before its own bytes.
    fn ask(&self, name: &str, path: &str, parts: &[Vec<u8>], is_joined: bool) -> [String; 3] {
        let ways = [
            ("https", "--http1.1"),
            ("https", "--http2"),
            ("http", "--http2-prior-knowledge"),
        ];
        let mut answers = ways.into_iter().zip(self.ports).map(|(way, port)| {
            let near = announce(port, parts.to_vec(), is_joined);
            curl(way.0, near, path, &[way.1, "-H", &format!("Host: {name}")])
        });
        [(); 3].map(|()| answers.next().unwrap())
    }
}

/// The content, or how curl complains: without its number, which depends on the moment of the end.
fn curl(scheme: &str, address: SocketAddr, path: &str, options: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["-sk", "--max-time", "20"])
        .args(options)
        .arg(format!("{scheme}://{address}{path}"))
        .output()
        .unwrap();
    match output.status.success() {
        true => String::from_utf8_lossy(&output.stdout).into_owned(),
        false => "closed".to_owned(),
    }
}

/// Takes one connection, and passes it on to `server` behind these parts of a header: each one is sent when the server
/// has received what came before. `is_joined`: the last part comes in one segment with the client's first bytes.
fn announce(server: SocketAddr, mut parts: Vec<Vec<u8>>, is_joined: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = listener.local_addr().unwrap();
    thread::spawn(move || -> io::Result<()> {
        let mut client = listener.accept()?.0;
        let mut far = TcpStream::connect(server)?;
        far.set_nodelay(true)?;
        if is_joined {
            let mut first = vec![0; 16 * 1024];
            let len = client.read(&mut first)?;
            let last = parts.last_mut().expect("a header");
            last.extend_from_slice(&first[..len]);
        }
        for part in parts {
            far.write_all(&part)?;
            wait_until_received(&far);
        }
        let (mut from_far, mut to_client) = (far.try_clone()?, client.try_clone()?);
        thread::spawn(move || {
            let _ = io::copy(&mut from_far, &mut to_client);
            let _ = to_client.shutdown(Shutdown::Both);
        });
        let _ = io::copy(&mut client, &mut far);
        far.shutdown(Shutdown::Write)
    });
    near
}

/// Waits until the process at the other end has read everything from its socket, or has closed it (proc_net_tcp).
fn wait_until_received(near: &TcpStream) {
    let hexadecimal = |address: SocketAddr| format!("0100007F:{:04X}", address.port());
    let (local, peer) = (near.local_addr().unwrap(), near.peer_addr().unwrap());
    let row = format!(": {} {} ", hexadecimal(peer), hexadecimal(local));
    wait_for("the other end", || {
        let rows = fs::read_to_string("/proc/net/tcp").unwrap();
        let unread = rows.lines().find_map(|line| {
            let (_, rest) = line.split_once(&row)?;
            rest.split_whitespace()
                .nth(1)?
                .split(':')
                .nth(1)
                .map(str::to_owned)
        });
        unread
            .is_none_or(|unread| unread == "00000000")
            .then_some(())
    });
}

/// A header of version 2 with these addresses and fields: command, family, then what stands for both ends.
fn version_2(command: u8, family: u8, ends: &[u8], fields: &[(u8, &[u8])]) -> Vec<u8> {
    let mut behind = ends.to_vec();
    for (kind, value) in fields {
        behind.push(*kind);
        behind.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        behind.extend_from_slice(value);
    }
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend_from_slice(&[0x20 | command, family]);
    header.extend_from_slice(&u16::try_from(behind.len()).unwrap().to_be_bytes());
    header.extend_from_slice(&behind);
    header
}

/// 192.0.2.7:1234 to 192.0.2.8:443, by TCP over IPv4.
const ENDS: [u8; 12] = [192, 0, 2, 7, 192, 0, 2, 8, 0x04, 0xd2, 0x01, 0xbb];
const FIELDS: [(u8, &[u8]); 2] = [(2, b"a.example"), (5, b"id-of-it")];
const VERSION_1: &[u8] = b"PROXY TCP4 192.0.2.7 192.0.2.8 1234 443\r\n";

fn by_each_version(facts: &str) -> [String; 3] {
    ["HTTP/1.1", "HTTP/2.0", "HTTP/2.0"].map(|version| format!("{facts} {version}"))
}

#[test]
fn a_header_before_the_handshake_tells_the_client_as_in_nginx() {
    let ipv6: Vec<u8> = [[0x20, 1, 0x0d, 0xb8], [0; 4], [0; 4], [0, 0, 0, 1]].concat();
    let ends_6 = [&ipv6[..], &ipv6, &[0x04, 0xd2, 0x01, 0xbb]].concat();
    let ipv4 = "192.0.2.7 1234 192.0.2.8 443";
    let headers = [
        (VERSION_1.to_vec(), ipv4, "192.0.2.7"),
        (version_2(1, 0x11, &ENDS, &[]), ipv4, "192.0.2.7"),
        (version_2(1, 0x11, &ENDS, &FIELDS), ipv4, "192.0.2.7"),
        (
            b"PROXY TCP6 2001:db8::1 2001:db8::1 1234 443\r\n".to_vec(),
            "2001:db8::1 1234 2001:db8::1 443",
            "2001:db8::1",
        ),
        (
            version_2(1, 0x21, &ends_6, &FIELDS),
            "2001:db8::1 1234 2001:db8::1 443",
            "2001:db8::1",
        ),
        (b"PROXY UNKNOWN\r\n".to_vec(), "   ", "127.0.0.1"),
        (version_2(0, 0, &[], &[]), "   ", "127.0.0.1"),
    ];
    for is_nginx in [false, true] {
        let server = Told::start(is_nginx, "");
        for (header, ends, client) in &headers {
            let (shown, parts) = (header.escape_ascii(), [header.clone()]);
            // In a segment of its own, and in one with the ClientHello or the preface.
            let told = server.ask("told", "/", &parts, false);
            let expected = by_each_version(&format!("{ends} 127.0.0.1 127.0.0.1"));
            let log = server.site.error_log();
            assert_eq!(told, expected, "nginx: {is_nginx}, {shown}\n{log}");
            let believed = server.ask("believed", "/", &parts, true);
            let expected = by_each_version(&format!("{ends} {client} 127.0.0.1"));
            assert_eq!(believed, expected, "nginx: {is_nginx}, {shown}");
        }
        let allowed = server.ask("believed", "/allowed", &[VERSION_1.to_vec()], true);
        assert_eq!(allowed, ["hello\n"; 3].map(str::to_owned));
        let denied = server.ask(
            "believed",
            "/allowed",
            &[b"PROXY UNKNOWN\r\n".to_vec()],
            true,
        );
        assert!(
            denied.iter().all(|page| page.contains("403 Forbidden")),
            "{denied:?}"
        );
    }
}

#[test]
fn curl_announces_itself() {
    let server = Told::start(false, "");
    for (scheme, port, way) in [
        ("https", server.ports[0], "--http1.1"),
        ("https", server.ports[1], "--http2"),
        ("http", server.ports[2], "--http2-prior-knowledge"),
    ] {
        let options = ["--haproxy-protocol", way, "-H", "Host: told"];
        let told = curl(scheme, port, "/", &options);
        let words: Vec<&str> = told.split(' ').collect();
        let expected = ["127.0.0.1", "127.0.0.1", &port.port().to_string()];
        assert_eq!([words[0], words[2], words[3]], expected, "{told}");
    }
}

#[test]
fn a_header_in_several_segments_is_awaited_before_the_handshake() {
    let server = Told::start(
        false,
        "location = /fields { return 200 \"$proxy_protocol_tlv_authority $proxy_protocol_tlv_unique_id $server_protocol\"; }",
    );
    let by_byte = |header: &[u8]| header.iter().map(|byte| vec![*byte]).collect::<Vec<_>>();
    let with_fields = version_2(1, 0x11, &ENDS, &FIELDS);
    let long = [b'x'; 3000];
    let [much, first, rest] = {
        let header = version_2(1, 0x11, &ENDS, &[FIELDS[0], FIELDS[1], (0xe0, &long)]);
        let (first, rest) = header.split_at(1500);
        [header.clone(), first.to_vec(), rest.to_vec()]
    };
    for parts in [
        by_byte(VERSION_1),
        by_byte(&with_fields),
        vec![with_fields[..14].to_vec(), with_fields[14..].to_vec()],
        vec![much],
        vec![first, rest],
    ] {
        for is_joined in [false, true] {
            let told = server.ask("told", "/", &parts, is_joined);
            let expected = by_each_version("192.0.2.7 1234 192.0.2.8 443 127.0.0.1 127.0.0.1");
            assert_eq!(told, expected, "{}", server.site.error_log());
            if parts != by_byte(VERSION_1) {
                let fields = server.ask("told", "/fields", &parts, is_joined);
                assert_eq!(fields, by_each_version("a.example id-of-it"));
            }
        }
    }
    let served_by_nginx = Told::start(true, "");
    let parts = [VERSION_1[..20].to_vec(), VERSION_1[20..].to_vec()];
    let told = served_by_nginx.ask("told", "/", &parts, false);
    assert_eq!(
        told,
        ["closed"; 3].map(str::to_owned),
        "COMPLIANCE.md says so"
    );
}

/// What comes back to these bytes before the end of the connection, which comes in time.
fn received_at(server: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server).unwrap();
    let time_max = Duration::from_secs(20);
    stream.set_read_timeout(Some(time_max)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut received = Vec::new();
    match stream.read_to_end(&mut received) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
    }
    received
}

#[test]
fn what_is_no_header_closes_the_connection_before_the_handshake() {
    let hello = b"\x16\x03\x01\x00\x05\x01\0\0\x01\0";
    let wrong_version = {
        let mut header = version_2(1, 0x11, &ENDS, &[]);
        header[12] = 0x31;
        header
    };
    let short = version_2(1, 0x11, &ENDS[..8], &[]);
    for is_nginx in [false, true] {
        let server = Told::start(is_nginx, "");
        for bytes in [
            &hello[..],
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"PROXY TCP4 192.0.2.7\r\n",
            b"PROXY TCP4 192.0.2.7 192.0.2.8 1234\r\n",
            &wrong_version,
            &short,
        ] {
            for (number, port) in server.ports.into_iter().enumerate() {
                let (shown, received) = (bytes.escape_ascii(), received_at(port, bytes));
                // nginx sends its SETTINGS ahead of a header before HTTP/2 in clear.
                let is_ahead = is_nginx && number == 2;
                let expected: &[u8] = if is_ahead { &received } else { b"" };
                assert_eq!(received, expected, "nginx: {is_nginx}, {shown}");
                if is_ahead {
                    assert!(
                        received.get(3).is_none_or(|kind| *kind == 4),
                        "{received:?}"
                    );
                }
            }
        }
        for (scheme, port) in ["https", "https", "http"].into_iter().zip(server.ports) {
            assert_eq!(curl(scheme, port, "/", &["--http2"]), "closed");
        }
        server
            .site
            .wait_for_log("while reading PROXY protocol, client: 127.0.0.1, server: ");
    }
}
