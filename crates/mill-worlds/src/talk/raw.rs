//! A client that only carries bytes.

use super::http::{limit, send};
use super::reader::{Read, Reader};
use super::{Problem, Talking, leave};
use crate::content::{self, Hash};
use crate::plan::Leave;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use std::rc::Rc;

/// Sends bytes and FIN; the server answers with length and hash.
pub(super) async fn hash(talking: Talking<'_>, number: u32, len: usize) -> Result<(), Problem> {
    let Talking { client, plan, .. } = talking;
    let stream = talking.connect(&client.addresses.hash).await?;
    let bytes = content::of(number, len);
    if send(&stream, bytes, limit(plan)).await? == Read::Enough {
        leave(stream, matches!(plan.leaves, Leave::Reset(_)));
        return Ok(());
    }
    stream.shutdown();
    let mut reader = Reader {
        stream: &stream,
        scheduler: &client.scheduler,
        pause: plan.pause,
        limit: usize::MAX,
        came: 0,
        came_before: 0,
    };
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
    let stream = talking.connect(&client.addresses.echo).await?;
    let bytes = content::of(number, len);
    stream.write(Payload::Shared(Rc::from(bytes), 0..len));
    stream.shutdown();
    let mut reader = Reader {
        stream: &stream,
        scheduler: &client.scheduler,
        pause: plan.pause,
        limit: limit(plan),
        came: 0,
        came_before: 0,
    };
    if reader.content(bytes).await? == Read::Enough {
        leave(stream, matches!(plan.leaves, Leave::Reset(_)));
        return Ok(());
    }
    reader.end().await
}
