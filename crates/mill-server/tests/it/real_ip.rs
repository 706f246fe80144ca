//! The client's address as a proxy in front tells it. The rules themselves are in the differential test.

use crate::server::{ADDRESS, Server, in_http};
use mill_sim::world::World;

fn start(directives: &str) -> Server {
    let text = in_http(&format!(
        "log_format told '$remote_addr $remote_port. $realip_remote_addr'; {directives}"
    ));
    Server::configured(World::new(1), &text, 1)
}

#[test]
fn a_kept_answer_is_logged_with_the_client_of_each_request() {
    let mut server = start(&format!(
        "set_real_ip_from 10.0.0.0/8; server {{ listen {ADDRESS}; root /site; open_file_cache max=9; \
         access_log /access.log told; }}"
    ));
    let client = server.world.connect_from("10.0.0.9:5000", ADDRESS);
    for field in ["X-Real-IP: 192.0.2.1", "X-Real-IP: [2001:db8::1]:7", "X: y"] {
        client.send(format!("GET /a.txt HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"));
        server.run();
    }
    assert_eq!(
        server.logs.lines("/access.log"),
        [
            "192.0.2.1 . 10.0.0.9",
            "2001:db8::1 7. 10.0.0.9",
            "10.0.0.9 5000. 10.0.0.9"
        ]
    );
}

#[test]
fn a_location_that_believes_others_than_its_server_keeps_no_answer() {
    let mut server = start(&format!(
        "server {{ listen {ADDRESS}; root /site; open_file_cache max=9; access_log /access.log told; \
         location /a.txt {{ set_real_ip_from 10.0.0.0/8; }} }}"
    ));
    let client = server.world.connect_from("10.0.0.9:5000", ADDRESS);
    for address in ["192.0.2.1", "192.0.2.2"] {
        let field = format!("X-Real-IP: {address}");
        client.send(format!("GET /a.txt HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"));
        server.run();
    }
    let lines = server.logs.lines("/access.log");
    assert_eq!(lines, ["192.0.2.1 . 10.0.0.9", "192.0.2.2 . 10.0.0.9"]);
}

#[test]
fn a_proxy_on_a_unix_domain_socket_is_believed_as_unix() {
    let text = "set_real_ip_from unix:; server { listen unix:/s; access_log /access.log told; return 204; }";
    let mut server = start(text);
    let client = server.world.connect("unix:/s");
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Real-IP: 192.0.2.1\r\n\r\n");
    server.run();
    assert_eq!(server.logs.lines("/access.log"), ["192.0.2.1 . unix:"]);
}
