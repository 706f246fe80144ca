//! An upstream server that writes down every byte that it gets, by connection.

use crate::lenient::Reader;
use crate::payload::Payload;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A running one; it ends with the process.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes: Mutex<Vec<Vec<u8>>>,
    /// What `/first?k=NUMBER` is answered.
    answers: Vec<Payload>,
}

/// Between the parts of an answer.
const PAUSE: Duration = Duration::from_millis(5);

impl Recorder {
    pub(super) fn start(answers: Vec<Payload>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            bytes: Mutex::default(),
            answers,
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                let number = {
                    let mut bytes = shared.bytes.lock().unwrap();
                    bytes.push(Vec::new());
                    bytes.len() - 1
                };
                thread::spawn(move || shared.serve(stream, number));
            }
        });
        Self { address, shared }
    }

    /// What has come on each connection since it was forgotten.
    pub(super) fn bytes(&self) -> Vec<Vec<u8>> {
        self.shared.bytes.lock().unwrap().clone()
    }

    pub(super) fn forget(&self) {
        self.shared
            .bytes
            .lock()
            .unwrap()
            .iter_mut()
            .for_each(Vec::clear);
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream, number: usize) {
        let _ = stream.set_nodelay(true);
        let (mut received, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while let Ok(len @ 1..) = stream.read(&mut buffer) {
            received.extend_from_slice(&buffer[..len]);
            self.bytes.lock().unwrap()[number].extend_from_slice(&buffer[..len]);
            while let Some(len) = request_len(&received) {
                let request = received.drain(..len).collect::<Vec<_>>();
                if !self.answer(&request, &mut stream) {
                    let _ = stream.shutdown(Shutdown::Write);
                }
            }
        }
    }

    /// Answers with the target; false where the connection is to end.
    fn answer(&self, request: &[u8], stream: &mut TcpStream) -> bool {
        let line = String::from_utf8_lossy(request);
        let target = line.split(' ').nth(1).unwrap_or_default();
        let number = target.strip_prefix("/first?k=");
        if let Some(payload) =
            number.and_then(|number| self.answers.get(number.parse::<usize>().ok()?))
        {
            return send(payload, stream);
        }
        let content = if request.starts_with(b"HEAD ") {
            ""
        } else {
            target
        };
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}",
            target.len()
        );
        // The proxy may have gone.
        let _ = stream.write_all(answer.as_bytes());
        true
    }
}

/// A request to `/early` is answered once its head has come, and what follows is another one.
fn request_len(bytes: &[u8]) -> Option<usize> {
    let is_early = bytes.starts_with(b"POST /early");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.filter(|_| is_early).map(|end| end + 4);
    end.or_else(|| Reader::STRICT.request_len(bytes))
}

fn send(payload: &Payload, stream: &mut TcpStream) -> bool {
    for part in &payload.parts {
        let text = part.strip_suffix("✂".as_bytes());
        let _ = stream.write_all(text.unwrap_or(part));
        if text.is_some() {
            return false;
        }
        thread::park_timeout(PAUSE);
    }
    true
}
