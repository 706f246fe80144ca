//! IPv6 extension headers before the segments of a client, as its kernel sends them for socket options.

use crate::namespace::{has, text_of};
use crate::server::Site;
use crate::topology::{HOSTS, between, kernel_connections, serve};
use std::fs;

/// What all scripts begin with: a socket whose packets have these headers (RFC 3542 sections 6 to 9), each with an option of
/// six bytes. Linux sends them from the SYN on.
const SOCKET: &str = "
import errno, http.client, socket, sys
HOP_BY_HOP, DESTINATION = 54, 59
def connect(headers, option=b'\\1\\4\\0\\0\\0\\0', port=80):
    one = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    one.settimeout(20)
    for header in headers:
        one.setsockopt(socket.IPPROTO_IPV6, header, b'\\0\\0' + option)
    one.connect((sys.argv[1], port))
    return one
";

fn python(script: &str, arguments: &[&str]) -> String {
    let script = format!("{SOCKET}{script}");
    let host = HOSTS[1].trim_matches(['[', ']']);
    let words = [&["-c", &script, host], arguments].concat();
    text_of("python3", &words)
}

#[test]
fn requests_behind_extension_headers_are_answered_by_the_stack() {
    if !has("python3") {
        println!("not tested: there is no python3");
        return;
    }
    for mtu in [1500, 9000] {
        between(mtu, |topology| {
            let site = Site::new();
            let _server = serve(&site);
            let large = site.path("large.bin");
            let script = "
expected = open(sys.argv[2], 'rb').read()
for headers in [[DESTINATION], [HOP_BY_HOP], [HOP_BY_HOP, DESTINATION]]:
    connection = http.client.HTTPConnection(sys.argv[1], 80)
    connection.sock = connect(headers)
    for path, content in [('/', b'hello\\n'), ('/large.bin', expected)] * 2:
        connection.request('GET', path)
        assert connection.getresponse().read() == content, path
    connection.request('POST', '/', body=b'x' * 300000)
    assert connection.getresponse().status == 405
print('ok')
";
            let text = topology.at_client(|| python(script, &[large.to_str().unwrap()]));
            assert_eq!(text, "ok\n");
            assert_eq!(kernel_connections(80), "");
            // Headers for another port are the kernel's.
            let script = "
try:
    connect([HOP_BY_HOP, DESTINATION], port=81)
except ConnectionRefusedError:
    print('refused')
";
            assert_eq!(topology.at_client(|| python(script, &[])), "refused\n");
        });
    }
}

/// RFC 8200, section 4.2: the two highest bits of an option that is not known.
#[test]
fn unknown_options_are_answered_as_their_highest_bits_ask() {
    if !has("python3") {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let _server = serve(&site);
        let script = "
for kind in [0x1e, 0x9e, 0xde]:
    try:
        one = connect([DESTINATION], bytes([kind, 4, 0, 0, 0, 0]))
        one.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        print(one.recv(12).decode())
    except OSError as error:
        print(errno.errorcode[error.errno])
";
        // Linux makes EPROTO of a parameter problem.
        let expected = "HTTP/1.1 200\nEPROTO\nEPROTO\n";
        assert_eq!(topology.at_client(|| python(script, &[])), expected);
        // An option that asks for silence: the SYN is dropped.
        let script = "
try:
    one = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    one.settimeout(0.3)
    one.setsockopt(socket.IPPROTO_IPV6, DESTINATION, b'\\0\\0\\x5e\\4\\0\\0\\0\\0')
    one.connect((sys.argv[1], 80))
except TimeoutError:
    print('silence')
";
        assert_eq!(topology.at_client(|| python(script, &[])), "silence\n");
        // None of them has reached the kernel.
        let text = fs::read_to_string("/proc/thread-self/net/snmp6").unwrap();
        let errors = text.lines().find(|line| line.starts_with("Ip6InHdrErrors"));
        assert_eq!(errors.unwrap().split_whitespace().last(), Some("0"));
    });
}
