//! `millstream serve DIRECTORY`: a folder without a configuration.

use crate::client::{Client, get};
use crate::site::{Site, free_address, send};
use mill_sys::interface;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A server of a site's directory, and its announcement.
struct Served {
    child: Child,
    address: SocketAddr,
    announcement: String,
}

impl Served {
    fn start(site: &Site, options: &[&str]) -> Self {
        let address = free_address();
        let mut child = Command::new(env!("CARGO_BIN_EXE_millstream"))
            .arg("serve")
            .arg(site.path(""))
            .args(["--port", &address.port().to_string()])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut announcement = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut announcement).unwrap();
        // The access log goes there, too, and must be read.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        Self {
            child,
            address,
            announcement,
        }
    }

    fn status(&self, path: &str) -> u16 {
        get(self.address, path).unwrap().status
    }

    /// The URLs of the announcement.
    fn urls(&self) -> Vec<&str> {
        let words = self.announcement.split([' ', ',']);
        words.filter(|word| word.starts_with("http://")).collect()
    }

    /// Ctrl-C.
    fn end(mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::new);
        send(pid.unwrap(), Signal::Interrupt);
        assert!(self.child.wait().unwrap().success());
    }
}

/// Addresses of this machine that other machines may reach.
fn outer_addresses() -> Vec<IpAddr> {
    let known = interface::addresses().unwrap().into_iter();
    let known = known.map(|known| known.address);
    known
        .filter(|address| match address {
            IpAddr::V4(address) => !address.is_loopback(),
            IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
        })
        .collect()
}

#[test]
fn a_directory_is_served_to_this_machine_until_ctrl_c() {
    let site = Site::new();
    let served = Served::start(&site, &[]);
    let port = served.address.port();
    assert_eq!(
        served.announcement,
        format!(
            "{} is at http://localhost:{port}/ until Ctrl-C\n",
            site.path("").display()
        )
    );
    assert_eq!(served.status("/index.html"), 200);
    for address in outer_addresses() {
        let answered = Client::connect(SocketAddr::new(address, port)).is_ok();
        assert!(!answered, "{address} is for other machines");
    }
    served.end();
}

#[test]
fn every_announced_url_works_also_those_for_other_machines() {
    let site = Site::new();
    let served = Served::start(&site, &["--listen", "0.0.0.0"]);
    let port = served.address.port();
    let urls = served.urls();
    assert_eq!(
        urls.first(),
        Some(&format!("http://localhost:{port}/").as_str())
    );
    let ipv4 = outer_addresses()
        .into_iter()
        .filter(IpAddr::is_ipv4)
        .count();
    assert_eq!(urls.len(), 1 + ipv4, "{urls:?}");
    for url in urls {
        let host = url.trim_start_matches("http://").trim_end_matches('/');
        let host = host.replace("localhost", "127.0.0.1");
        assert_eq!(
            get(host.parse().unwrap(), "/").unwrap().status,
            200,
            "{url}"
        );
    }
    served.end();
}

#[test]
fn dot_files_are_not_found_unless_enabled() {
    let site = Site::new();
    std::fs::remove_file(site.path("index.html")).unwrap();
    std::fs::create_dir_all(site.path(".git")).unwrap();
    std::fs::create_dir_all(site.path("sub/.hidden")).unwrap();
    std::fs::write(site.path("plain.txt"), "plain").unwrap();
    for name in [".env", ".git/config", "sub/.hidden/file", "a.b"] {
        std::fs::write(site.path(name), "secret").unwrap();
    }
    let hidden = [
        "/.env",
        "/%2eenv",
        "/x/../.env",
        "/.git/",
        "/.git",
        "/.git/config",
        "/sub/.hidden/file",
    ];
    let check = |options: &[&str], expected: &[u16]| {
        let served = Served::start(&site, options);
        let found: Vec<u16> = hidden.iter().map(|path| served.status(path)).collect();
        assert_eq!(found, expected, "{options:?}");
        assert_eq!(served.status("/a.b"), 200);
        let mut stream = TcpStream::connect(served.address).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut list = String::new();
        stream.read_to_string(&mut list).unwrap();
        assert!(
            list.contains("plain.txt") && !list.contains(".env") && !list.contains(".git"),
            "{list}"
        );
        served.end();
    };
    check(&[], &[404; 7]);
    check(&["--dot-files"], &[200, 200, 200, 200, 301, 200, 200]);
}

#[test]
fn a_port_in_use_is_reported_in_one_line_that_names_the_option() {
    let site = Site::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .arg("serve")
        .arg(site.path(""))
        .args(["--port", &address.port().to_string()])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = format!(
        "bind() to {address} failed (98: Address already in use): choose another port with \"--port\"\n"
    );
    assert!(stderr.ends_with(&line), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn an_address_of_another_machine_is_reported_with_its_option() {
    let site = Site::new();
    // An address for documentation (RFC 5737).
    let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .arg("serve")
        .arg(site.path(""))
        .args(["--listen", "192.0.2.1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = "(99: Cannot assign requested address): this machine has no such address, choose another with \"--listen\"\n";
    assert!(stderr.ends_with(line), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}
