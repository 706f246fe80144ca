//! A client that only carries bytes.

use super::http::{limit, send};
use super::reader::{Read, Reader};
use super::{Client, Problem, Talking, leave};
use crate::content::{self, Hash};
use crate::plan::Leave;
use mill_runtime::payload::{Payload, Shared};
use mill_runtime::stream::Stream;

impl Client {
    /// What is said before anything else: where it may leave with the SYN, no more than a server sends back that nothing
    /// reads yet.
    fn first_of<'a>(&self, bytes: &'a [u8], limit: usize) -> &'a [u8] {
        let most = if self.asks_fast_open { FIRST_BYTES } else { 0 };
        &bytes[..bytes.len().min(limit).min(most)]
    }
}

/// Sends bytes and FIN; the server answers with length and hash.
pub(super) async fn hash(talking: Talking<'_>, number: u32, len: usize) -> Result<(), Problem> {
    let Talking { client, plan, .. } = talking;
    let bytes = content::of(number, len);
    let first = client.first_of(bytes, limit(plan));
    let stream = talking.connect(&client.addresses.hash, first).await?;
    if send(&stream, bytes, first.len(), limit(plan)).await? == Read::Enough {
        leave(stream, matches!(plan.leaves, Leave::Reset(_)));
        return Ok(());
    }
    stream.shutdown();
    let mut reader = Reader::new(&stream, &talking, usize::MAX, 0);
    let mut expected = Hash::new();
    expected.feed(bytes);
    match reader.content(&expected.to_bytes()).await {
        Err(Problem::WrongByte { .. }) => Err(Problem::WrongHash),
        Err(problem) => Err(problem),
        Ok(_) => reader.end().await,
    }
}

/// Sends everything and FIN at once, and reads what comes back.
pub(super) async fn echo(talking: Talking<'_>, number: u32, len: usize) -> Result<(), Problem> {
    let Talking { client, plan, .. } = talking;
    let bytes = content::of(number, len);
    let first = client.first_of(bytes, usize::MAX);
    let stream = talking.connect(&client.addresses.echo, first).await?;
    stream.write(Payload::Shared(Shared::from(bytes), first.len()..len));
    stream.shutdown();
    let mut reader = Reader::new(&stream, &talking, limit(plan), 0);
    if reader.content(bytes).await? == Read::Enough {
        leave(stream, matches!(plan.leaves, Leave::Reset(_)));
        return Ok(());
    }
    reader.end().await
}

/// A little more than a segment.
const FIRST_BYTES: usize = 2_000;
