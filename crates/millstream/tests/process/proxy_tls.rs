//! TLS to servers, with Millstream and nginx behind.

use crate::site::{Site, free_address, wait_for};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

/// Runs OpenSSL in the site's folder.
pub(crate) fn openssl(site: &Site, line: &str) {
    let output = Command::new("openssl")
        .args(line.split(' '))
        .current_dir(site.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
}

/// An authority `ca.pem`, and `NAME.pem` with `NAME.key` that it has certified for this name.
pub(crate) fn certify(site: &Site, names: &[&str]) {
    let key = "-nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256";
    openssl(
        site,
        &format!("req -x509 {key} -keyout ca.key -out ca.pem -days 30 -subj /CN=ca"),
    );
    for name in names {
        openssl(
            site,
            &format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"),
        );
        fs::write(site.path("names"), format!("subjectAltName=DNS:{name}\n")).unwrap();
        openssl(
            site,
            &format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {name}.pem -days 30 -extfile names"
            ),
        );
    }
}

const VALUES: &str =
    "return 200 \"$ssl_protocol $ssl_server_name $ssl_session_reused $connection_requests\";";

fn get(address: SocketAddr, path: &str) -> String {
    let output = Command::new("curl")
        .args([
            "-sS",
            "--max-time",
            "20",
            &format!("http://{address}{path}"),
        ])
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn servers_are_reached_over_tls_by_every_way_to_name_them() {
    let (site, front, behind) = (Site::new(), free_address(), free_address());
    certify(&site, &["b.example"]);
    let content: Vec<u8> = (0..=250_u8).cycle().take(2_000_000).collect();
    fs::write(site.path("large"), &content).unwrap();
    let port = behind.port();
    site.configure(
        "",
        &format!(
            "client_max_body_size 10m; upstream kept {{ server {behind}; keepalive 4; }}
             upstream watched {{ zone w 64k; server {behind}; }}
             server {{ listen {behind} ssl; ssl_certificate b.example.pem; ssl_certificate_key b.example.key;
             location = /values {{ {VALUES} }} location = /echo {{ client_body_in_file_only on;
             client_body_temp_path {store}; proxy_pass http://{front}/length; }} }}
             server {{ listen {front}; proxy_ssl_trusted_certificate ca.pem;
             location = /length {{ return 200 $content_length; }}
             location /plain/ {{ proxy_pass https://{behind}/; }}
             location /once/ {{ proxy_pass https://{behind}/; proxy_ssl_session_reuse off; }}
             location /old/ {{ proxy_pass https://{behind}/; proxy_ssl_protocols TLSv1.2; }}
             location /named/ {{ proxy_pass https://{behind}/; proxy_ssl_server_name on; proxy_ssl_name b.example; }}
             location /checked/ {{ proxy_pass https://{behind}/; proxy_ssl_verify on; proxy_ssl_name b.example:{port}; }}
             location /wrong/ {{ proxy_pass https://{behind}/; proxy_ssl_verify on; proxy_ssl_name c.example; }}
             location /evaluated/ {{ set $where {behind}; proxy_pass https://$where/values; }}
             location /kept/ {{ proxy_pass https://kept/; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}
             location /watched/ {{ proxy_pass https://watched/; health_check uri=/values interval=1s; }}
             location /announced/ {{ proxy_pass https://{behind}/; proxy_protocol on; }} }}",
            store = site.path("store").display(),
        ),
    );
    site.start();
    for (path, expected) in [
        ("/plain/values", "TLSv1.3  . 1"),
        ("/plain/values", "TLSv1.3  r 1"),
        ("/once/values", "TLSv1.3  . 1"),
        ("/once/values", "TLSv1.3  . 1"),
        ("/old/values", "TLSv1.2  . 1"),
        ("/named/values", "TLSv1.3 b.example . 1"),
        ("/checked/values", "TLSv1.3  . 1"),
        ("/evaluated/", "TLSv1.3  r 1"),
        ("/kept/values", "TLSv1.3  . 1"),
        ("/kept/values", "TLSv1.3  . 2"),
        ("/watched/values", "TLSv1.3  . 1"),
    ] {
        let got = get(front, path);
        if path == "/evaluated/" {
            assert!(got.starts_with("TLSv1.3"), "{got}");
        } else if path == "/watched/values" {
            // The probes may have made a session.
            assert!(got.starts_with("TLSv1.3  ") && got.ends_with(" 1"), "{got}");
        } else {
            assert_eq!(got, expected, "{path}\n{}", site.error_log());
        }
    }
    assert!(get(front, "/wrong/values").contains("502 Bad Gateway"));
    site.wait_for_log("upstream SSL certificate does not match \"");
    site.wait_for_log(&format!("while SSL handshaking to upstream, client: 127.0.0.1, server: , request: \"GET /wrong/values HTTP/1.1\", upstream: \"https://{behind}/values\""));
    let large = Command::new("curl")
        .args([
            "-sS",
            "--max-time",
            "20",
            &format!("http://{front}/kept/large"),
        ])
        .output()
        .unwrap();
    assert!(large.stdout == content);
    let file = format!("@{}", site.path("large").display());
    let sent = Command::new("curl")
        .args(["-sS", "--max-time", "20", "--data-binary", &file])
        .arg(format!("http://{front}/kept/echo"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&sent.stdout), "2000000");
    // A header of the PROXY protocol comes before the handshake, which this server does not expect.
    assert!(get(front, "/announced/values").contains("502 Bad Gateway"));
}

#[test]
fn openssls_own_settings_hold_for_handshakes_with_servers_too() {
    let (site, front, behind) = (Site::new(), free_address(), free_address());
    certify(&site, &["b.example"]);
    let location = |name: &str, lines: &str| {
        let lines = lines.replace("command", "proxy_ssl_conf_command");
        format!("location /{name}/ {{ proxy_pass https://{behind}/; {lines} }}\n")
    };
    let locations = [
        location(
            "suite",
            "command Ciphersuites TLS_CHACHA20_POLY1305_SHA256;",
        ),
        location("old", "command MaxProtocol TLSv1.2;"),
        location(
            "order",
            "command MaxProtocol TLSv1.2; proxy_ssl_protocols TLSv1.2 TLSv1.3;",
        ),
        location(
            "both",
            "command MaxProtocol TLSv1.2; command Groups P-384; proxy_ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384;",
        ),
        location("group", "command Curves secp384r1;"),
        location(
            "options",
            "command Options ServerPreference,NoRenegotiation;",
        ),
        location("unknown", "command CipherString ALL;"),
    ];
    let configure = |locations: &str| {
        site.configure(
            "",
            &format!(
                "server {{ listen {behind} ssl; ssl_certificate b.example.pem; ssl_certificate_key b.example.key;
                 return 200 \"$ssl_protocol $ssl_cipher $ssl_curve\"; }}
                 server {{ listen {front};\n{locations} }}"
            ),
        );
    };
    configure(&locations.concat());
    let tested = site.nginx(&["-t"]);
    let said = String::from_utf8_lossy(&tested.stderr).into_owned();
    for notice in [
        "the option \"NoRenegotiation\" has no effect",
        "\"CipherString\" has no effect",
    ] {
        assert!(said.contains(notice), "{said}");
    }
    assert!(
        !said.contains("\"ServerPreference\" has no effect"),
        "{said}"
    );
    site.start();
    for (path, expected) in [
        ("/suite/", "TLSv1.3 TLS_CHACHA20_POLY1305_SHA256 "),
        ("/old/", "TLSv1.2 ECDHE-ECDSA-"),
        ("/order/", "TLSv1.2 ECDHE-ECDSA-"),
        ("/both/", "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384 secp384r1"),
        ("/group/", "TLSv1.3 TLS_AES_"),
        ("/unknown/", "TLSv1.3 TLS_AES_"),
    ] {
        let got = get(front, path);
        assert!(got.starts_with(expected), "{path}: {got}");
        let is_of_group = ["/both/", "/group/"].contains(&path);
        assert_eq!(got.ends_with("secp384r1"), is_of_group, "{path}: {got}");
    }
    configure(&location(
        "refused",
        "command Ciphersuites TLS_AES_128_CCM_SHA256;",
    ));
    let refused = site.nginx(&["-t"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the cipher \"TLS_AES_128_CCM_SHA256\" is not there"),
        "{said}"
    );
}

/// nginx as a server behind, ended with this value.
pub(crate) struct Nginx(pub(crate) Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).unwrap();
        crate::site::send(
            mill_sys::process::Pid::new(pid).unwrap(),
            mill_sys::signal::Signal::Terminate,
        );
        let _ = self.0.wait();
    }
}

#[test]
fn nginx_behind_gets_our_certificate_and_the_clients_address_before_the_handshake() {
    let (site, front, behind) = (Site::new(), free_address(), free_address());
    certify(&site, &["b.example", "client.example"]);
    let folder = site.path("").display().to_string();
    let text = format!(
        "daemon off; master_process off; pid {folder}/behind.pid; error_log {folder}/behind.log; events {{ }}
         http {{ access_log off; server {{ listen {behind} ssl proxy_protocol; ssl_certificate b.example.pem;
         ssl_certificate_key b.example.key; ssl_client_certificate ca.pem; ssl_verify_client on;
         location / {{ return 200 \"$ssl_client_verify $ssl_client_s_dn $proxy_protocol_addr $ssl_server_name\"; }} }} }}"
    );
    fs::write(site.path("behind.conf"), text).unwrap();
    let nginx = Command::new("nginx")
        .arg("-c")
        .arg(site.path("behind.conf"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _nginx = Nginx(nginx);
    wait_for("nginx", || TcpStream::connect(behind).ok());
    let own =
        "proxy_ssl_certificate client.example.pem; proxy_ssl_certificate_key client.example.key;";
    site.configure(
        "",
        &format!(
            "server {{ listen {front}; proxy_protocol on; proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem;
             proxy_ssl_name b.example; proxy_ssl_server_name on;
             location /with/ {{ proxy_pass https://{behind}/; {own} }}
             location /without/ {{ proxy_pass https://{behind}/; }} }}"
        ),
    );
    site.start();
    let expected = "SUCCESS CN=client.example 127.0.0.1 b.example";
    assert_eq!(get(front, "/with/a"), expected, "{}", site.error_log());
    let refused = get(front, "/without/a");
    assert!(
        refused.contains("400 No required SSL certificate was sent"),
        "{refused}"
    );
}

#[test]
fn settings_that_cannot_be_used_are_refused_with_their_line() {
    let (site, front) = (Site::new(), free_address());
    certify(&site, &["b.example"]);
    for (lines, expected) in [
        (
            "proxy_ssl_verify on;",
            "no proxy_ssl_trusted_certificate for proxy_ssl_verify",
        ),
        (
            "proxy_ssl_verify on; proxy_ssl_trusted_certificate b.example.key;",
            "cannot load certificate",
        ),
        (
            "proxy_ssl_trusted_certificate none.pem;",
            "No such file or directory",
        ),
        (
            "proxy_ssl_certificate b.example.pem;",
            "no \"proxy_ssl_certificate_key\" is defined",
        ),
        (
            "proxy_ssl_certificate b.example.pem; proxy_ssl_certificate_key ca.key;",
            "key values mismatch",
        ),
    ] {
        let server = format!(
            "server {{ listen {front}; location / {{ proxy_pass https://127.0.0.1; {lines} }} }}"
        );
        site.configure("", &server);
        let output = site.nginx(&["-t"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{lines}: {stderr}");
        assert!(stderr.contains(expected), "{lines}: {stderr}");
    }
}
