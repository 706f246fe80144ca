//! A server on a card, and its client.

use crate::card::{ADDRESS, Card, INTERFACE, Wire, with_card};
use crate::client::Client;
use crate::namespace::text_of;
use crate::server::{Server, Site};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// A server that serves files, and gives back what is sent to `/echo`.
pub(crate) struct Serving<'a> {
    pub(crate) wire: &'a Wire,
    pub(crate) site: Site,
    pub(crate) server: Server,
}

/// Runs a test with a server of a single worker, which has the card without copies.
pub(crate) fn serve(card: Card, test: impl FnOnce(&Serving<'_>) + Send) {
    with_card(card, |wire| {
        let site = Site::new();
        let http = format!(
            "server {{ listen 80; keepalive_requests 1000000; client_max_body_size 0;\n\
             location /echo {{ proxy_pass http://{}; }} }}",
            give_back()
        );
        let conf = site.configure("worker_processes 1;", &http);
        let stack = format!("af_xdp:{INTERFACE}{}", card.options);
        let server = Server::configured(&site, &conf, &["--stack", &stack]);
        let serving = Serving { wire, site, server };
        let rings = serving.status("--rings");
        assert!(rings.contains(WITHOUT_COPIES), "{rings}");
        test(&serving);
    });
}

impl Serving<'_> {
    pub(crate) fn connect(&self) -> Client {
        let address: SocketAddr = format!("{ADDRESS}:80").parse().unwrap();
        self.wire.at_client(|| Client::connect(address)).unwrap()
    }

    /// What `millstream status` prints.
    pub(crate) fn status(&self, words: &str) -> String {
        let pid = self.server.pid().number().to_string();
        text_of(env!("CARGO_BIN_EXE_millstream"), &["status", words, &pid])
    }

    /// Whether the error log has a line with these words.
    pub(crate) fn has_said(&self, words: &str) -> bool {
        self.site.error_log().contains(words)
    }

    pub(crate) fn large(&self) -> Vec<u8> {
        std::fs::read(self.site.path("large.bin")).unwrap()
    }
}

/// What `millstream status --rings` shows of zero copy.
const WITHOUT_COPIES: &str = "no: frames lie where the device puts them";

/// A server of a few lines at the returned address of the thread's namespace, which answers each request with its content.
fn give_back() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A peer that leaves ends its own connection only.
            let _ = answer(&stream);
        }
    });
    address
}

fn answer(stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut len = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut content = vec![0; len];
    reader.read_exact(&mut content)?;
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(&content)
}
