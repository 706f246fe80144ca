//! What a tunnel holds while it is idle.

use super::{read_until, start_proxy};
use mill_sys::allocation::bytes_held;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Tunnels that are opened before memory is looked at, and as many again.
const TUNNELS: usize = 64;

/// What a browser sends to begin a WebSocket.
const UPGRADE: &[u8] = b"GET /room?id=12 HTTP/1.1\r\nHost: www.example.org\r\nConnection: Upgrade\r\n\
    Pragma: no-cache\r\nCache-Control: no-cache\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) \
    AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\nUpgrade: websocket\r\n\
    Origin: https://www.example.org\r\nSec-WebSocket-Version: 13\r\nAccept-Encoding: gzip, deflate, br\r\n\
    Accept-Language: en-US,en;q=0.9\r\nCookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
const SWITCHING: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// The servers' ends of all tunnels.
fn switch(listener: &TcpListener) -> Vec<TcpStream> {
    let accept = || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(read_until(&mut stream, b"\r\n\r\n"));
        stream.write_all(SWITCHING).unwrap();
        stream
    };
    std::iter::repeat_with(accept).take(2 * TUNNELS).collect()
}

/// Opens half of the tunnels and the others after `go_on`; `open` says when a half is open.
fn open_tunnels(address: SocketAddr, open: &AtomicU32, go_on: &Barrier) {
    let mut all = Vec::new();
    for _ in 0..2 {
        for _ in 0..TUNNELS {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(UPGRADE).unwrap();
            assert!(read_until(&mut stream, b"\r\n\r\n"));
            all.push(stream);
        }
        open.fetch_add(1, Ordering::SeqCst);
        // Wakes the worker.
        all.last_mut().unwrap().write_all(b"x").unwrap();
        go_on.wait();
    }
}

#[test]
fn an_idle_tunnel_holds_at_most_1280_bytes() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let behind = origin.local_addr().unwrap();
    let directives = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
        proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr;";
    let (mut turn, address) = start_proxy("access_log /log combined;", directives, behind);
    let open = AtomicU32::new(0);
    let go_on = Barrier::new(2);
    thread::scope(|scope| {
        let servers = scope.spawn(|| switch(&origin));
        scope.spawn(|| open_tunnels(address, &open, &go_on));
        let mut held = [0; 2];
        for (half, held) in (1..).zip(&mut held) {
            while open.load(Ordering::SeqCst) < half {
                assert!(turn(), "the worker has not ended");
            }
            *held = bytes_held();
            go_on.wait();
        }
        let of_each = (held[1] - held[0]) / i64::try_from(TUNNELS).unwrap();
        assert!((1..=1280).contains(&of_each), "{of_each} bytes");
        drop(turn);
        drop(servers);
    });
}
