//! An exchange that records the answer, without a connection or request content.

/// A configuration over simulated files.
pub(crate) mod local;

use mill_http::status::Status;
use mill_runtime::payload::Payload;
use mill_server::content::Pull;
use mill_server::exchange::{ContentError, Exchange, SendError};
use mill_server::local::{FileOf, Local, ResponseOf};
use mill_server::proxy::connection::UpstreamConnection;
use mill_server::request::Request;
use mill_server::response::{FieldLine, Response};
use mill_sim::engine::SimEngine;
use std::io::Read;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The result of one request.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// The answer, with the content as the exchange got it; `None` if the connection is closed without one.
    pub(crate) answer: Option<Response<FileOf<SimEngine>>>,
    /// The same request may get the same answer again.
    pub(crate) pure: bool,
    /// The client asked with HEAD: it sees no content.
    pub(crate) is_head: bool,
}

impl Exchange for Recorder {
    type Engine = SimEngine;

    async fn content(
        &mut self,
        _: &Request,
        _: usize,
        _: impl FnMut(&[u8]),
    ) -> Result<bool, ContentError> {
        Ok(false)
    }

    fn interim(&mut self, _: &Request, _: Status, _: &[FieldLine]) {}

    fn discard_present(&mut self, _: &Request, _: bool) -> Result<(), ContentError> {
        Ok(())
    }

    async fn respond(
        &mut self,
        request: &mut Request,
        response: Box<ResponseOf<SimEngine>>,
    ) -> Result<(), SendError> {
        request.sent.status = response.status.0;
        // These bytes are not counted; a log only tests whether they are zero.
        request.sent.bytes = 1;
        self.pure = request.pure;
        self.is_head = request.message.head.method == mill_http::method::Method::Head;
        self.answer = Some(*response);
        Ok(())
    }

    async fn discard_rest(&mut self, _: &Request) -> Result<(), ContentError> {
        Ok(())
    }

    fn is_reset(&self) -> bool {
        false
    }

    fn is_abandoned(&self) -> bool {
        false
    }

    fn upgrade(&mut self, _: UpstreamConnection<SimEngine>, _: Duration) {}

    fn keep_open(&mut self, request: Box<Request>) -> Option<Box<Request>> {
        Some(request)
    }

    fn end_connection(&mut self, _: bool) {}

    fn abort(&mut self) {}
}

/// All of an answer's content, decompressed if it is compressed.
pub(crate) fn whole(response: Response<FileOf<SimEngine>>, local: &Local<SimEngine>) -> Vec<u8> {
    let mut lines = response.fields.iter();
    let is_encoded =
        lines.any(|line| &*line.name == b"Content-Encoding" && *line.value == *b"gzip");
    let mut content = response.content;
    let pull = Pull {
        local,
        most: u64::MAX,
        copies: true,
        read_most: u64::MAX,
    };
    let mut bytes = Vec::new();
    while let Some(piece) = done(content.next(&pull)).expect("a file of its length") {
        match piece {
            Payload::Copy(piece) => bytes.extend_from_slice(piece),
            Payload::Shared(shared, range) => bytes.extend_from_slice(&shared[range]),
            Payload::File { .. } => panic!("copies were asked for"),
        }
    }
    // The simulated compressed files hold text.
    if !is_encoded || bytes.is_ascii() {
        return bytes;
    }
    let mut unzipped = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(bytes.as_slice());
    decoder.read_to_end(&mut unzipped).expect("whole gzip");
    unzipped
}

/// The result of a future that never waits: these files answer at once.
pub(crate) fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing makes this wait"),
    }
}
