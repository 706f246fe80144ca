//! The same bytes to Millstream, to nginx over OpenSSL, and to OpenSSL's own server: what each says and how it ends, as the table in
//! `docs/tls-alerts.md`, which is compared with what is found.

mod cases;
mod hello;
mod peer;

use crate::client_certificates::{CLIENT, issue, root};
use crate::site::{Site, free_address, wait_for};
use cases::{Act, At, Case, cases};
use mill_tls::protection::Version;
use peer::{Flight, Peer};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

const PAGE: &str = include_str!("../../../../docs/tls-alerts.md");

const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// Each server of a program, by its number in [`At`].
type Addresses = [SocketAddr; 5];

fn certify(site: &Site) {
    root(site, "ca");
    root(site, "other");
    let names = "subjectAltName=DNS:a.example\n";
    issue(site, "server", "/CN=a.example", "ca", names, "30");
    issue(site, "good", "/CN=good", "ca", CLIENT, "30");
    issue(site, "expired", "/CN=expired", "ca", CLIENT, "-1");
    issue(site, "stranger", "/CN=stranger", "other", CLIENT, "30");
}

/// Both read the same configuration.
fn configuration([usual, named, verifying, newer, older]: Addresses) -> String {
    let certified = "ssl_certificate server.pem; ssl_certificate_key server.key; return 200 ok;";
    let both = "ssl_protocols TLSv1.2 TLSv1.3;";
    format!(
        "server {{ listen {usual} ssl; {both} {certified} }}
         server {{ listen {named} ssl default_server; {both} ssl_reject_handshake on; }}
         server {{ listen {named} ssl; server_name a.example; {both} {certified} }}
         server {{ listen {verifying} ssl; {both} ssl_verify_client on; ssl_client_certificate ca.pem; {certified} }}
         server {{ listen {newer} ssl; ssl_protocols TLSv1.3; {certified} }}
         server {{ listen {older} ssl; ssl_protocols TLSv1.2; {certified} }}"
    )
}

/// A program that serves at these addresses.
fn serve(site: &Site, is_nginx: bool) -> Addresses {
    let addresses = [(); 5].map(|()| free_address());
    certify(site);
    site.configure("", &configuration(addresses));
    if is_nginx {
        std::fs::remove_file(site.path("nginx")).unwrap();
        std::os::unix::fs::symlink("/usr/sbin/nginx", site.path("nginx")).unwrap();
        site.start_other();
    } else {
        site.start();
    }
    for address in addresses {
        wait_for("the server", || TcpStream::connect(address).ok());
    }
    addresses
}

/// `openssl s_server` as often as there are addresses; ended with this value.
struct Plain(Vec<Child>);

impl Drop for Plain {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Plain {
    fn start(site: &Site) -> (Self, Addresses) {
        certify(site);
        let addresses = [(); 5].map(|()| free_address());
        let options = [
            "-no_tls1_1",
            "-servername a.example -servername_fatal -cert2 server.pem -key2 server.key",
            "-Verify 1 -CAfile ca.pem -verify_return_error",
            "-tls1_3",
            "-tls1_2",
        ];
        let start = |(address, options): (&SocketAddr, &str)| {
            Command::new("openssl")
                .args(["s_server", "-www", "-alpn", "http/1.1", "-no_renegotiation"])
                .args(["-cert", "server.pem", "-key", "server.key", "-accept"])
                .arg(address.to_string())
                .args(options.split(' '))
                .current_dir(site.path(""))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let all = Self(addresses.iter().zip(options).map(start).collect());
        for address in addresses {
            wait_for("openssl", || TcpStream::connect(address).ok());
        }
        (all, addresses)
    }
}

/// How the case comes out there.
fn outcome(case: &Case, addresses: &Addresses, site: &Site) -> String {
    let address = match case.at {
        At::Usual => addresses[0],
        At::Named => addresses[1],
        At::Verifying => addresses[2],
        At::Newer => addresses[3],
        At::Older => addresses[4],
    };
    let identity = |name: &str| (!name.is_empty()).then(|| site.path(name));
    let request = |mut peer: Peer, before: &[u8]| {
        let request = peer.seal(23, REQUEST);
        peer.send(&[before, &request].concat());
        peer
    };
    let peer = match &case.act {
        Act::Bytes(bytes) => {
            let mut peer = Peer::connect(address);
            peer.send(bytes);
            peer
        }
        Act::Then(first, said, second) => {
            let mut peer = Peer::connect(address);
            peer.send(first);
            peer.until(said);
            peer.send(second);
            peer
        }
        Act::Flight(version, alter) => Peer::shake(address, *version, None, alter),
        Act::Certificate(name) => {
            let identity = identity(name);
            let peer = Peer::shake(address, Version::Tls13, identity.as_deref(), Flight::emit);
            request(peer, &[])
        }
        Act::CertificateFlight(name, alter) => {
            let identity = identity(name);
            Peer::shake(address, Version::Tls13, identity.as_deref(), alter)
        }
        Act::Sealed(version, records) => {
            let mut peer = Peer::secured(address, *version);
            let sealed = records
                .iter()
                .flat_map(|(kind, content)| peer.seal(*kind, content));
            let sealed: Vec<u8> = sealed.collect();
            request(peer, &sealed)
        }
        Act::Clear(version, bytes) => request(Peer::secured(address, *version), bytes),
        Act::Damaged(version) => {
            let mut peer = Peer::secured(address, *version);
            let mut bytes = peer.seal(23, REQUEST);
            *bytes.last_mut().unwrap() ^= 1;
            peer.send(&bytes);
            peer
        }
    };
    peer.outcome()
}

/// A row of the page: the case, the clause, outcomes of Millstream, nginx and `openssl s_server`, and the reason of a difference.
fn row(line: &str) -> Option<[&str; 6]> {
    let cells: Vec<&str> = line.trim().split('|').map(str::trim).collect();
    let cells = cells.get(1..cells.len().checked_sub(1)?)?;
    cells.try_into().ok()
}

#[test]
fn clients_that_break_rules_are_told_what_the_rfcs_ask_and_what_differs_from_openssl_is_listed() {
    let (ours, theirs, plain) = (Site::new(), Site::new(), Site::new());
    let of_ours = serve(&ours, false);
    let of_theirs = serve(&theirs, true);
    let (_plain, of_plain) = Plain::start(&plain);
    let all = cases();
    let run = |addresses, site| -> Vec<String> {
        let outcomes = all.iter().map(|case| outcome(case, addresses, site));
        outcomes.collect()
    };
    let (ours, theirs, plain) = std::thread::scope(|scope| {
        let ours = scope.spawn(|| run(&of_ours, &ours));
        let theirs = scope.spawn(|| run(&of_theirs, &theirs));
        let plain = scope.spawn(|| run(&of_plain, &plain));
        (
            ours.join().unwrap(),
            theirs.join().unwrap(),
            plain.join().unwrap(),
        )
    });
    let rows: Vec<[&str; 6]> = PAGE.lines().filter_map(row).skip(2).collect();
    let mut wrong = Vec::new();
    let mut table = String::new();
    for (((case, ours), theirs), plain) in all.iter().zip(&ours).zip(&theirs).zip(&plain) {
        let written = rows.iter().find(|row| row[0] == case.name);
        let reason = written.map_or("", |row| row[5]);
        let found = [case.name, case.clause, ours, theirs, plain];
        table += &format!("| {} | {reason} |\n", found.join(" | "));
        if written.is_none_or(|row| row[..5] != found) {
            wrong.push(format!("{}: the page says {written:?}", case.name));
        }
        if !case.asked.iter().any(|asked| ours.starts_with(asked)) {
            wrong.push(format!(
                "{}: {} asks for {:?}, not {ours}",
                case.name, case.clause, case.asked
            ));
        }
        if (ours == theirs) != reason.is_empty() {
            wrong.push(format!(
                "{}: a difference from nginx has a reason, and nothing else",
                case.name
            ));
        }
    }
    if rows.len() != all.len() {
        wrong.push(format!(
            "the page has {} rows for {} cases",
            rows.len(),
            all.len()
        ));
    }
    assert!(wrong.is_empty(), "{}\n\n{table}", wrong.join("\n"));
}
