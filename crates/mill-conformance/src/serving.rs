//! What servers do with a connection, over any engine.

use mill_runtime::payload::{Payload, Shared};
use mill_runtime::stream::{Stream, StreamError};

/// Sends back what comes, until the peer finishes.
pub async fn echo(stream: impl Stream) {
    while let Ok(readable) = stream.readable(1).await {
        if readable.unread == 0 {
            return;
        }
        let bytes = stream.read(|bytes| (bytes.len(), bytes.to_vec()));
        stream.write(Payload::Copy(&bytes));
        if stream.drained(0).await.is_err() {
            return;
        }
    }
}

/// Reads messages of a length byte and as many bytes, and answers each with `<` the message `>`, in three writes.
pub async fn echo_messages(stream: impl Stream) {
    while let Ok(Some(message)) = next_message(&stream).await {
        stream.write(Payload::Copy(b"<"));
        let len = message.len();
        stream.write(Payload::Shared(Shared::from(message), 0..len));
        stream.write(Payload::Copy(b">"));
    }
}

/// The next message, or `None` when the peer has finished.
async fn next_message(stream: &impl Stream) -> Result<Option<Vec<u8>>, StreamError> {
    if stream.readable(1).await?.unread == 0 {
        return Ok(None);
    }
    let len = stream.read(|bytes| (0, usize::from(bytes[0])));
    if stream.readable(1 + len).await?.unread < 1 + len {
        return Ok(None);
    }
    Ok(Some(
        stream.read(|bytes| (1 + len, bytes[1..=len].to_vec())),
    ))
}

/// A message as [`echo_messages`] reads it.
pub fn message(text: &str) -> Vec<u8> {
    let len = u8::try_from(text.len()).expect("a message is short");
    [&[len], text.as_bytes()].concat()
}
