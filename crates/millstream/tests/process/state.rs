//! The `state` file of a group: what the API has changed survives reloads and restarts.

use crate::client::Client;
use crate::site::{Site, free_address, send, wait_until_ended};
use mill_sys::signal::Signal;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Status and text of the answer to a call of the API.
fn call(address: SocketAddr, method: &str, path: &str, content: &str) -> (u16, String) {
    let mut client = Client::connect(address).unwrap();
    let len = content.len();
    let request = format!(
        "{method} /api/9/http/upstreams/app/servers{path} HTTP/1.1\r\nHost: test\r\n\
         Content-Length: {len}\r\n\r\n{content}"
    );
    client.send(request.as_bytes()).unwrap();
    let answer = client.answer().unwrap();
    (
        answer.status,
        String::from_utf8_lossy(&answer.content).into_owned(),
    )
}

/// A proxy of two workers and its origin, whose group has a `state` file.
struct Proxied {
    site: Site,
    front: SocketAddr,
    origin: SocketAddr,
    state: PathBuf,
}

fn proxied() -> Proxied {
    let site = Site::new();
    let (front, origin) = (free_address(), free_address());
    let directory = site.path("state");
    fs::create_dir(&directory).unwrap();
    // The workers write it, as www-data if root runs the test.
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    let state = directory.join("app.conf");
    let text = state.display();
    site.configure(
        "worker_processes 2;",
        &format!(
            "upstream app {{ zone app 64k; state {text}; }}
             server {{ listen {origin}; }}
             server {{ listen {front}; location / {{ proxy_pass http://app; }}
                       location /api {{ api write=on; }} }}"
        ),
    );
    Proxied {
        site,
        front,
        origin,
        state,
    }
}

#[test]
fn changes_while_configurations_are_loaded_are_all_kept() {
    let proxied = proxied();
    let (site, front) = (&proxied.site, proxied.front);
    let master = site.start();
    site.wait_until_served(proxied.origin);
    let add = |number: usize| {
        let content = format!("{{\"server\":\"127.0.1.{number}:1\",\"down\":true}}");
        let (status, text) = call(front, "POST", "", &content);
        assert_eq!(status, 201, "{text}");
        let (_, id) = text.split_once("\"id\":").expect("it has a number");
        let end = id.find(|byte: char| !byte.is_ascii_digit());
        format!("/{}", &id[..end.unwrap_or(id.len())])
    };
    for round in 0..20 {
        send(master, Signal::Hangup);
        // Numbers are not without gaps: a server of a file that was read before it was removed takes one.
        let first = add(4 * round);
        add(4 * round + 1);
        add(4 * round + 2);
        assert_eq!(call(front, "DELETE", &first, "").0, 200);
        site.wait_for_log(&format!("configuration {} is in force", round + 2));
    }
    let numbers = (0..80).filter(|number| [1, 2].contains(&(number % 4)));
    let expected: String = numbers
        .map(|number| format!("server 127.0.1.{number}:1 down;\n"))
        .collect();
    assert_eq!(fs::read_to_string(&proxied.state).unwrap(), expected);
    let known: String = call(front, "GET", "", "").1;
    assert_eq!(known.matches("\"server\":").count(), 40, "{known}");
}

#[test]
fn servers_of_a_state_file_survive_reloads_and_restarts() {
    let Proxied {
        site,
        front,
        origin,
        state,
    } = proxied();
    let master = site.start();
    site.wait_until_served(origin);
    assert_eq!(call(front, "GET", "", ""), (200, String::from("[]")));
    for server in [&origin.to_string(), "127.0.0.9:1"] {
        let content = format!("{{\"server\":\"{server}\",\"down\":false,\"weight\":2}}");
        let (status, text) = call(front, "POST", "", &content);
        assert_eq!(status, 201, "{text}");
    }
    assert_eq!(call(front, "PATCH", "/1", "{\"down\":true}").0, 200);
    let saved = format!("server {origin} weight=2;\nserver 127.0.0.9:1 weight=2 down;\n");
    assert_eq!(fs::read_to_string(&state).unwrap(), saved);
    let known = call(front, "GET", "", "");
    let is_proxied = || {
        let answer = Client::connect(front).and_then(|mut client| client.get("/index.html"));
        assert_eq!(answer.unwrap().content, b"hello\n");
    };
    is_proxied();

    let before = site.worker(master, &[]);
    send(master, Signal::Hangup);
    site.wait_for_log("configuration 2 is in force");
    assert_eq!(call(front, "GET", "", ""), known);
    is_proxied();

    send(master, Signal::Quit);
    wait_until_ended(master);
    wait_until_ended(before);
    site.start();
    site.wait_until_served(origin);
    assert_eq!(call(front, "GET", "", ""), known);
    is_proxied();
}
