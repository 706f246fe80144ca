//! The first bytes of a connection, looked at and left where they are: `ssl_preread`.

use super::SessionStatus;
use super::session::Session;
use crate::local::Local;
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use mill_tls::client_hello::{Beginning, ClientHello};
use std::future::poll_fn;
use std::task::Poll;

/// What the first bytes say so far.
enum Looked {
    Hello(Box<ClientHello>),
    /// No TLS, or nothing to learn from it: the session goes on without.
    Nothing,
    /// So many bytes are needed at least.
    More(usize),
    /// The client has ended the connection before.
    Ended,
    Full,
}

/// Waits for a whole ClientHello; a client that speaks something else is passed on as it is.
pub(super) async fn look<E: Engine>(
    session: &mut Session,
    near: &impl Stream,
    local: &Local<E>,
) -> Result<(), SessionStatus> {
    let settings = &session.server.settings.stream;
    if !settings.preread {
        return Ok(());
    }
    let most = usize::try_from(settings.preread_buffer_size).unwrap_or(usize::MAX);
    let deadline = local.scheduler.now() + settings.preread_timeout;
    let mut least = 1;
    let looked = poll_fn(|_| {
        loop {
            let finished = match near.poll_readable(least) {
                Poll::Ready(Ok(readable)) => readable.finished,
                Poll::Ready(Err(_)) => return Poll::Ready(Some(Looked::Ended)),
                Poll::Pending => return local.scheduler.poll_deadline(deadline).map(|_| None),
            };
            match near.read(|bytes| (0, look_at(bytes, finished, most))) {
                Looked::More(needed) => least = needed,
                found => return Poll::Ready(Some(found)),
            }
        }
    });
    let looked = looked.await;
    if !matches!(looked, Some(Looked::Nothing)) {
        // What is not whole has values that are empty.
        session.hello = Some(Box::default());
    }
    match looked {
        Some(Looked::Hello(hello)) => session.hello = Some(hello),
        Some(Looked::Nothing | Looked::More(_)) => {}
        // As nginx ends it: without a word, and with status 200.
        Some(Looked::Ended) | None => return Err(SessionStatus::OK),
        Some(Looked::Full) => {
            let line = format_args!("preread buffer full while prereading client data");
            session.log_error(LogLevel::Error, line, local);
            return Err(SessionStatus::BAD_REQUEST);
        }
    }
    Ok(())
}

fn look_at(bytes: &[u8], finished: bool, most: usize) -> Looked {
    match ClientHello::read(bytes) {
        Beginning::Hello(hello) => Looked::Hello(Box::new(hello)),
        Beginning::Unknown => Looked::Nothing,
        Beginning::Incomplete(_) if !begins_like_tls(bytes) => Looked::Nothing,
        Beginning::Incomplete(_) if finished => Looked::Ended,
        Beginning::Incomplete(needed) if needed > most => Looked::Full,
        Beginning::Incomplete(needed) => Looked::More(needed),
    }
}

/// Whether the bytes may be a record of a handshake: type 22, version 3. One wrong byte is enough to pass on what waits
/// for no more.
fn begins_like_tls(bytes: &[u8]) -> bool {
    let matches = |at: usize, wanted: u8| bytes.get(at).is_none_or(|byte| *byte == wanted);
    matches(0, 22) && matches(1, 3)
}
