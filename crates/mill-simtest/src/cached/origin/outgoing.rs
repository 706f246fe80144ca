//! An answer on its way.

use super::Act;
use crate::cached::ledger::Identity;
use crate::proxied::incoming::{End, Framing};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamOption};
use mill_runtime::time::Duration;
use mill_sim::random::Random;
use mill_sim::stream::SimStream;

/// An answer on its way.
pub(super) struct Outgoing<'a> {
    pub(super) stream: &'a SimStream,
    pub(super) scheduler: &'a Scheduler,
    pub(super) is_slow: bool,
}

impl Outgoing<'_> {
    /// Sends head and content as `act` says. Returns whether the connection stays open.
    pub(super) async fn send(
        &self,
        identity: &Identity,
        fields: &str,
        content: &[u8],
        is_head: bool,
        act: Act,
        random: &mut Random,
    ) -> Result<bool, End> {
        let framing = match random.up_to(5) {
            _ if is_head => Framing::Length(content.len()),
            0 => Framing::Chunked,
            1 => Framing::UntilClose,
            _ => Framing::Length(content.len()),
        };
        let told = match framing {
            Framing::Length(len) => format!("Content-Length: {len}"),
            Framing::Chunked => String::from("Transfer-Encoding: chunked"),
            Framing::UntilClose => String::from("Connection: close"),
        };
        let head = format!(
            "HTTP/1.1 {} Status\r\n{fields}{told}\r\n\r\n",
            identity.status
        );
        if act == Act::CutHead {
            let cut = head.as_bytes().get(..head.len() - 5);
            self.stream.write(Payload::Copy(cut.unwrap_or_default()));
            return drain(self.stream).await.map(|()| leave(self.stream, false));
        }
        self.stream.write(Payload::Copy(head.as_bytes()));
        if is_head {
            return drain(self.stream).await.map(|()| true);
        }
        let is_cut = matches!(act, Act::CutContent { .. }) && !content.is_empty();
        let end = if is_cut {
            content.len() / 2
        } else {
            content.len()
        };
        self.pieces(content.get(..end).unwrap_or_default(), framing, random)
            .await?;
        if is_cut {
            // Without a length the end of the connection is that of the content: only a reset shows that it is cut.
            let by_reset = matches!(act, Act::CutContent { by_reset: true });
            return Ok(leave(
                self.stream,
                by_reset || framing == Framing::UntilClose,
            ));
        }
        if framing == Framing::Chunked {
            self.stream.write(Payload::Copy(b"0\r\n\r\n"));
        }
        if framing == Framing::UntilClose {
            // What is queued when the connection closes may be lost.
            return self
                .stream
                .drained(0)
                .await
                .map(|()| false)
                .map_err(End::Broken);
        }
        drain(self.stream).await.map(|()| true)
    }

    async fn pieces(
        &self,
        content: &[u8],
        framing: Framing,
        random: &mut Random,
    ) -> Result<(), End> {
        for piece in content.chunks(PIECE_BYTES) {
            if framing == Framing::Chunked {
                let size = format!("{:x}\r\n", piece.len());
                self.stream.write(Payload::Copy(size.as_bytes()));
            }
            self.stream.write(Payload::Copy(piece));
            if framing == Framing::Chunked {
                self.stream.write(Payload::Copy(b"\r\n"));
            }
            drain(self.stream).await?;
            if self.is_slow && random.happens(200_000) {
                let wait = Duration::from_millis(random.up_to(1_000));
                self.scheduler.sleep(wait).await;
            }
        }
        Ok(())
    }
}

pub(super) async fn drain(stream: &SimStream) -> Result<(), End> {
    stream.drained(QUEUED_BYTES).await.map_err(End::Broken)
}

/// The connection ends; the caller drops it.
pub(super) fn leave(stream: &SimStream, by_reset: bool) -> bool {
    if by_reset {
        // An engine without it would close, which is another way to leave.
        let _ = stream.set(StreamOption::ResetOnClose);
    }
    false
}

const PIECE_BYTES: usize = 7_000;
const QUEUED_BYTES: u64 = 20_000;
