//! `ssl_verify_client`, beside nginx: the same certificates to the same servers of both.

use crate::proxy_tls::{Nginx, openssl};
use crate::site::{Site, free_address, wait_for};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a certificate is made for.
const CA: &str = "basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign,cRLSign\n";
pub(crate) const CLIENT: &str = "basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n";

/// A root with `NAME.pem` and `NAME.key`.
pub(crate) fn root(site: &Site, name: &str) {
    openssl(
        site,
        &format!(
            "req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -keyout {name}.key -out {name}.pem -days 30 -subj /CN={name}"
        ),
    );
}

/// `NAME.pem` by an issuer, with this subject, for so many days.
pub(crate) fn issue(
    site: &Site,
    name: &str,
    subject: &str,
    issuer: &str,
    use_for: &str,
    days: &str,
) {
    let status = Command::new("openssl")
        .args(["req", "-nodes", "-utf8", "-newkey", "ec", "-pkeyopt"])
        .args([
            "ec_paramgen_curve:P-256",
            "-multivalue-rdn",
            "-subj",
            subject,
        ])
        .args([
            "-keyout",
            &format!("{name}.key"),
            "-out",
            &format!("{name}.csr"),
        ])
        .current_dir(site.path(""))
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "{subject}");
    fs::write(site.path("extensions"), use_for).unwrap();
    openssl(
        site,
        &format!(
            "x509 -req -in {name}.csr -CA {issuer}.pem -CAkey {issuer}.key -CAcreateserial -out {name}.pem -days {days} -extfile extensions"
        ),
    );
}

/// `NAME.pem` followed by others.
fn chain(site: &Site, name: &str, parts: &[&str]) {
    let mut all = Vec::new();
    for part in parts {
        all.extend(fs::read(site.path(format!("{part}.pem"))).unwrap());
    }
    fs::write(site.path(format!("{name}.pem")), all).unwrap();
}

fn make(site: &Site) {
    let odd = "/C=DE/ST=Baden-Württemberg/O=a, b \"c\" <d>; e=f/OU=x+UID=y/CN= #odd/emailAddress=a@b.example";
    root(site, "ca");
    root(site, "other");
    issue(
        site,
        "server",
        "/CN=a.example",
        "ca",
        "subjectAltName=DNS:a.example,DNS:b.example\n",
        "30",
    );
    issue(site, "good", "/O=Mill/CN=good", "ca", CLIENT, "30");
    issue(site, "odd", odd, "ca", CLIENT, "30");
    issue(site, "revoked", "/CN=revoked", "ca", CLIENT, "30");
    issue(
        site,
        "purpose",
        "/CN=purpose",
        "ca",
        "extendedKeyUsage=serverAuth\n",
        "30",
    );
    issue(site, "stranger", "/CN=stranger", "other", CLIENT, "30");
    issue(site, "middle", "/CN=middle", "ca", CA, "30");
    issue(site, "lower", "/CN=lower", "middle", CA, "30");
    issue(site, "one", "/CN=one", "middle", CLIENT, "30");
    issue(site, "two", "/CN=two", "lower", CLIENT, "30");
    chain(site, "one", &["one", "middle"]);
    chain(site, "two", &["two", "lower", "middle"]);
    openssl(
        site,
        "req -x509 -nodes -newkey rsa:2048 -keyout own.key -out own.pem -days 30 -subj /CN=own",
    );
    fs::write(site.path("index"), "").unwrap();
    fs::write(site.path("crlnumber"), "01\n").unwrap();
    let authority = "[ca]\ndefault_ca=d\n[d]\ndatabase=index\ncrlnumber=crlnumber\ndefault_md=sha256\ndefault_crl_days=30\n";
    fs::write(site.path("ca.conf"), authority).unwrap();
    let by = "-config ca.conf -cert ca.pem -keyfile ca.key";
    openssl(site, &format!("ca {by} -revoke revoked.pem"));
    openssl(site, &format!("ca {by} -gencrl -out ca.crl"));
}

const VALUES: &str = "return 200 \"$ssl_client_verify|$ssl_client_s_dn|$ssl_client_i_dn|$ssl_client_s_dn_legacy|\
$ssl_client_i_dn_legacy|$ssl_client_serial|$ssl_client_fingerprint|$ssl_client_v_start|$ssl_client_v_end|\
$ssl_client_v_remain|$ssl_client_escaped_cert|$ssl_client_raw_cert|$ssl_ciphers|$ssl_curves|$ssl_curve\";";

fn servers(addresses: &[SocketAddr]) -> String {
    let modes = [
        "ssl_verify_client on; ssl_client_certificate ca.pem;",
        "ssl_verify_client optional; ssl_client_certificate ca.pem; ssl_verify_depth 2;",
        "ssl_verify_client optional_no_ca;",
        "ssl_verify_client on; ssl_client_certificate ca.pem; ssl_crl ca.crl;",
        "ssl_verify_client on; ssl_client_certificate ca.pem; ssl_protocols TLSv1.2; error_page 495 496 /why;
         location = /why { internal; return 200 \"$status $ssl_client_verify\"; }",
    ];
    let mut text = String::new();
    for (address, mode) in addresses.iter().zip(modes) {
        text += &format!(
            "server {{ listen {address} ssl; server_name a.example; ssl_certificate server.pem; ssl_certificate_key server.key;
             {mode} location / {{ {VALUES} }} }}\n"
        );
    }
    // A second server at the first address.
    text += &format!(
        "server {{ listen {} ssl; server_name b.example; ssl_certificate server.pem; ssl_certificate_key server.key;
         ssl_verify_client optional; ssl_client_certificate other.pem; location / {{ {VALUES} }} }}\n",
        addresses[0]
    );
    text
}

/// The status and the content that curl gets with a certificate, or without one.
fn ask(site: &Site, address: SocketAddr, certificate: Option<&str>, host: &str) -> String {
    let mut command = Command::new("curl");
    command
        .args([
            "-sS",
            "--http1.1",
            "--max-time",
            "20",
            "-w",
            "\n%{http_code}",
        ])
        .args(["--cacert", "ca.pem", "--resolve"])
        .arg(format!("a.example:{}:127.0.0.1", address.port()))
        .args(["-H", &format!("Host: {host}")])
        .current_dir(site.path(""));
    if let Some(name) = certificate {
        command.args([
            "--cert",
            &format!("{name}.pem"),
            "--key",
            &format!("{name}.key"),
        ]);
    }
    let output = command
        .arg(format!("https://a.example:{}/", address.port()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.replace("millstream", "SERVER")
        .replace("nginx", "SERVER")
}

/// An answer without the version of its server.
fn without_version(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| match line.split_once("<center>SERVER") {
            Some((before, _)) => before,
            None => line,
        });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn certificates_of_clients_are_judged_and_shown_as_by_nginx() {
    let site = Site::new();
    make(&site);
    let ours: Vec<SocketAddr> = (0..5).map(|_| free_address()).collect();
    let theirs: Vec<SocketAddr> = (0..5).map(|_| free_address()).collect();
    let folder = site.path("").display().to_string();
    let text = format!(
        "daemon off; master_process off; pid {folder}/beside.pid; error_log {folder}/beside.log info; events {{ }}
         http {{ access_log off; {} }}",
        servers(&theirs)
    );
    fs::write(site.path("beside.conf"), text).unwrap();
    let nginx = Command::new("nginx")
        .arg("-c")
        .arg(site.path("beside.conf"))
        .stderr(Stdio::null())
        .spawn();
    let _nginx = Nginx(nginx.unwrap());
    for address in &theirs {
        wait_for("nginx", || TcpStream::connect(address).ok());
    }
    site.configure("", &servers(&ours));
    site.start();
    // A certificate of the same second has 30 whole days left for one of the two servers, and 29
    // for the other when the second ends between the two requests.
    wait_for("certificates of an earlier second", || {
        let made = fs::metadata(site.path("own.pem")).unwrap().modified();
        (made.unwrap().elapsed().ok()? > Duration::from_secs(2)).then_some(())
    });
    let certificates = [
        None,
        Some("good"),
        Some("odd"),
        Some("revoked"),
        Some("purpose"),
        Some("stranger"),
        Some("own"),
        Some("one"),
        Some("two"),
    ];
    let mut different = Vec::new();
    for certificate in certificates {
        for (mode, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            for host in ["a.example", "b.example"] {
                let found = without_version(&ask(&site, *ours, certificate, host));
                let expected = without_version(&ask(&site, *theirs, certificate, host));
                if found != expected {
                    let name = certificate.unwrap_or("none");
                    different.push(format!(
                        "{name} in mode {mode} for {host}\n-{expected}\n+{found}\n"
                    ));
                }
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    site.wait_for_log(
        "client sent no required SSL certificate while reading client request headers",
    );
    site.wait_for_log(
        "client SSL certificate verify error: (21:unable to verify the first certificate)",
    );
}
