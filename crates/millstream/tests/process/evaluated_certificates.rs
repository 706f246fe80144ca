//! Certificates whose names have variables, beside nginx: the same handshakes with the same servers of both.

use crate::client::Client;
use crate::proxy_tls::Nginx;
use crate::site::{Site, free_address, wait_for};
use crate::slow_disk::with_disk;
use crate::tls::{ECDSA, certify};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A certificate and its key, which workers may read.
fn certify_for_workers(site: &Site, name: &str) {
    certify(site, name, &ECDSA);
    let key = site.path(format!("{name}.key"));
    fs::set_permissions(key, fs::Permissions::from_mode(0o644)).unwrap();
}

/// The subject of the certificate that is shown to a client that asks for `name`, or why there is none.
fn shown(address: SocketAddr, name: Option<&str>, options: &[&str]) -> String {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &address.to_string()]);
    match name {
        Some(name) => command.args(["-servername", name]),
        None => command.arg("-noservername"),
    };
    let output = command.args(options).stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix("subject="))
        .or_else(|| {
            let at = text.find("SSL alert number")?;
            text[at..].lines().next()
        });
    found.unwrap_or(&text).to_owned()
}

/// Starts nginx with these servers.
fn nginx(site: &Site, http: &str, addresses: &[SocketAddr]) -> Nginx {
    let folder = site.path("").display().to_string();
    let text = format!(
        "daemon off; master_process off; pid {folder}/beside.pid; error_log {folder}/beside.log info; events {{ }}
         http {{ access_log off; ssl_protocols TLSv1.2 TLSv1.3; {http} }}",
    );
    fs::write(site.path("beside.conf"), text).unwrap();
    let nginx = Command::new("nginx")
        .arg("-c")
        .arg(site.path("beside.conf"))
        .stderr(Stdio::null())
        .spawn();
    for address in addresses {
        wait_for("nginx", || TcpStream::connect(address).ok());
    }
    Nginx(nginx.unwrap())
}

/// Servers whose certificates are named by the client's name, by a map, by a text in a map, and one of which has another
/// one that is loaded with the configuration.
fn servers(site: &Site, addresses: &[SocketAddr]) -> String {
    let text = |name: &str| fs::read_to_string(site.path(name)).unwrap();
    let (certificate, key) = (text("b.example.pem"), text("b.example.key"));
    let [by_name, by_map, by_text, beside] = addresses else {
        panic!("four addresses");
    };
    format!(
        "map $ssl_server_name $file {{ default a.example; ~^b\\. b.example; }}
         map $ssl_server_name $text {{ b.example \"{certificate}\"; }}
         map $ssl_server_name $text_key {{ b.example \"{key}\"; }}
         server {{ listen {by_name} ssl; ssl_certificate $ssl_server_name.pem; ssl_certificate_key $ssl_server_name.key; }}
         server {{ listen {by_map} ssl; ssl_certificate $file.pem; ssl_certificate_key ${{file}}.key; }}
         server {{ listen {by_text} ssl; ssl_certificate data:$text; ssl_certificate_key data:$text_key; }}
         server {{ listen {beside} ssl; ssl_certificate $ssl_server_name.pem; ssl_certificate_key $ssl_server_name.key;
             ssl_certificate rsa.example.pem; ssl_certificate_key rsa.example.key; }}"
    )
}

#[test]
fn names_with_variables_lead_to_the_certificates_of_nginx() {
    let site = Site::new();
    for name in ["a.example", "b.example"] {
        certify_for_workers(&site, name);
    }
    certify(&site, "rsa.example", &["rsa:2048"]);
    let [ours, theirs] = [(); 2].map(|()| [(); 4].map(|()| free_address()));
    let _nginx = nginx(&site, &servers(&site, &theirs), &theirs);
    site.configure("", &servers(&site, &ours));
    site.start();
    wait_for("a listener", || TcpStream::connect(ours[0]).ok());
    let names = [
        Some("a.example"),
        Some("b.example"),
        Some("c.example"),
        None,
    ];
    let mut seen = Vec::new();
    for (our, their) in ours.iter().zip(&theirs) {
        for name in names {
            for options in [
                &["-tls1_3"][..],
                &["-tls1_2"],
                &["-sigalgs", "RSA-PSS+SHA256"],
            ] {
                let (found, expected) = (shown(*our, name, options), shown(*their, name, options));
                // OpenSSL tells in another way that no certificate fits the client's algorithms.
                let is_unfit = options[0] == "-sigalgs" && our != &ours[3];
                if !is_unfit {
                    assert_eq!(
                        found,
                        expected,
                        "{name:?} {options:?}\n{}",
                        site.error_log()
                    );
                    seen.push(found);
                }
            }
        }
    }
    for expected in [
        "CN = a.example",
        "CN = b.example",
        "CN = rsa.example",
        "SSL alert number 80",
    ] {
        assert!(
            seen.iter().any(|seen| seen == expected),
            "{expected}: {seen:?}"
        );
    }
    // A name is the same in capitals; nginx 1.22 looks for another file then.
    assert_eq!(shown(ours[0], Some("B.EXAMPLE"), &[]), "CN = b.example");
    let missing = site.path("c.example.pem").display().to_string();
    site.wait_for_log(&format!(
        "cannot load certificate \"{missing}\": BIO_new_file() failed (2: No such file or directory) while SSL handshaking, client: 127.0.0.1"
    ));
    site.wait_for_log("SSL_do_handshake() failed (SSL: cert cb error) while SSL handshaking");
}

#[test]
fn no_name_of_a_client_leads_out_of_the_folder() {
    let (site, address) = (Site::new(), free_address());
    certify_for_workers(&site, "a.example");
    fs::create_dir_all(site.path("inner/x")).unwrap();
    for end in ["pem", "key"] {
        fs::copy(
            site.path(format!("a.example.{end}")),
            site.path(format!("inner/a.{end}")),
        )
        .unwrap();
    }
    site.configure(
        "",
        &format!(
            "server {{ listen {address} ssl; ssl_certificate inner/x/$ssl_server_name.pem; ssl_certificate_key inner/x/$ssl_server_name.key; }}"
        ),
    );
    site.start();
    wait_for("a listener", || TcpStream::connect(address).ok());
    for name in ["../a", "../../a.example", "x/../../a"] {
        let found = shown(address, Some(name), &[]);
        assert_eq!(found, "SSL alert number 47", "{name}");
    }
    assert!(
        !site.error_log().contains("cannot load"),
        "{}",
        site.error_log()
    );
}

#[test]
fn keys_are_read_with_the_rights_of_the_worker() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    site.configure(
        "",
        &format!(
            "server {{ listen {address} ssl; ssl_certificate $ssl_server_name.pem; ssl_certificate_key $ssl_server_name.key; }}"
        ),
    );
    site.start();
    wait_for("a listener", || TcpStream::connect(address).ok());
    assert_eq!(
        shown(address, Some("a.example"), &[]),
        "SSL alert number 80"
    );
    let key = site.path("a.example.key").display().to_string();
    site.wait_for_log(&format!(
        "cannot load certificate key \"{key}\": BIO_new_file() failed (13: Permission denied)"
    ));
}

/// The serial number of the certificate that is shown.
fn serial(address: SocketAddr) -> String {
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!(
            "openssl s_client -connect {address} -servername a.example </dev/null 2>/dev/null | openssl x509 -noout -serial"
        ))
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_renewed_file_is_shown_by_the_next_handshake_unless_a_cache_keeps_the_first_one() {
    let site = Site::new();
    let [without, kept, examined] = [(); 3].map(|()| free_address());
    certify_for_workers(&site, "a.example");
    let names = "ssl_certificate $ssl_server_name.pem; ssl_certificate_key $ssl_server_name.key;";
    site.configure(
        "worker_processes 2;",
        &format!(
            "server {{ listen {without} ssl; {names} }}
             server {{ listen {kept} ssl; {names} ssl_certificate_cache max=10 valid=1h inactive=1h; }}
             server {{ listen {examined} ssl; {names} ssl_certificate_cache max=10 valid=1s inactive=1h; }}"
        ),
    );
    site.start();
    wait_for("a listener", || TcpStream::connect(examined).ok());
    let first = serial(without);
    assert_eq!(
        [serial(kept), serial(examined)],
        [first.clone(), first.clone()]
    );
    certify_for_workers(&site, "a.example");
    let second = serial(without);
    assert_ne!(first, second);
    wait_for("the end of validity", || {
        (serial(examined) == second).then_some(())
    });
    assert_eq!(serial(kept), first);
    let status = site.nginx(&["-s", "reload"]).status;
    assert!(status.success());
    wait_for("an empty cache", || (serial(kept) == second).then_some(()));
}

#[test]
fn servers_of_stream_have_names_with_variables_too() {
    let (site, address) = (Site::new(), free_address());
    for name in ["a.example", "b.example"] {
        certify_for_workers(&site, name);
    }
    site.configure("", "");
    let text = fs::read_to_string(site.path("nginx.conf")).unwrap();
    let stream = format!(
        "stream {{ map $ssl_server_name $file {{ b.example b.example; default a.example; }}
           server {{ listen {address} ssl; ssl_certificate $file.pem; ssl_certificate_key $file.key; return ok; }} }}"
    );
    fs::write(site.path("nginx.conf"), text + &stream).unwrap();
    site.start();
    wait_for("a listener", || TcpStream::connect(address).ok());
    assert_eq!(shown(address, Some("b.example"), &[]), "CN = b.example");
    assert_eq!(shown(address, Some("x.example"), &[]), "CN = a.example");
}

#[test]
fn others_are_answered_while_a_handshake_waits_for_a_disk_with_its_certificate() {
    let secured = free_address();
    let servers = format!(
        "server {{ listen {secured} ssl; ssl_certificate disk/$number; ssl_certificate_key disk/$number; }}
         map $ssl_server_name $number {{ a.example 0; }}"
    );
    with_disk("", &servers, Duration::ZERO, |disk, address| {
        disk.set_answering(false);
        let waiting = std::thread::spawn(move || shown(secured, Some("a.example"), &[]));
        disk.wait_until_asked();
        let mut other = Client::connect(address).unwrap();
        for _ in 0..10 {
            assert_eq!(other.get("/index.html").unwrap().status, 200);
        }
        disk.set_answering(true);
        // What stands in the file is no certificate.
        assert_eq!(waiting.join().unwrap(), "SSL alert number 80");
    });
}

#[test]
fn files_that_handshakes_may_load_are_not_asked_for_by_a_test_of_the_configuration() {
    let (site, address) = (Site::new(), free_address());
    for (names, expected) in [
        (
            "ssl_certificate $ssl_server_name.pem; ssl_certificate_key $ssl_server_name.key;",
            None,
        ),
        (
            "ssl_certificate $ssl_server_name.pem;",
            Some("no \"ssl_certificate_key\" is defined for certificate \"$ssl_server_name.pem\""),
        ),
        (
            "ssl_certificate $nothing.pem; ssl_certificate_key $ssl_server_name.key;",
            Some("unknown \"nothing\" variable"),
        ),
        (
            "ssl_certificate $ssl_server_name.pem; ssl_certificate_key $ssl_server_name.key; ssl_certificate_cache valid=1s;",
            Some("\"ssl_certificate_cache\" must have the \"max\" parameter"),
        ),
        (
            "ssl_certificate $ssl_server_name.pem; ssl_certificate_key $ssl_server_name.key; ssl_certificate_cache max=0;",
            Some("invalid parameter \"max=0\""),
        ),
    ] {
        site.configure("", &format!("server {{ listen {address} ssl; {names} }}"));
        let output = site.nginx(&["-t"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        match expected {
            None => assert!(output.status.success(), "{stderr}"),
            Some(expected) => assert!(stderr.contains(expected), "{stderr}"),
        }
    }
}
