//! A client that speaks HTTP.

use super::reader::{Read, Reader};
use super::{Problem, Talking, WorldStream, leave};
use crate::content;
use crate::plan::{Asking, Leave, TalkPlan};
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;

/// The path of a file of a world.
pub(crate) fn path(number: u32, len: usize) -> String {
    format!("/{number}-{len}")
}

/// Where content may be posted to, and what the server says then.
pub(crate) const POST_PATH: &str = "/post";
pub(crate) const POST_ANSWER: &str = "taken";

pub(super) async fn get(
    talking: Talking<'_>,
    files: &[(u32, usize)],
    how: Asking,
) -> Result<(), Problem> {
    let plan = talking.plan;
    let limit = limit(plan);
    let mut came = 0;
    // Files that are asked for on one connection.
    let together = if how == Asking::Apart { 1 } else { files.len() };
    for files in files.chunks(together) {
        let at_once = matches!(how, Asking::Pipelined | Asking::HalfClosed);
        let first = if at_once { files } else { &files[..1] };
        let requests = first
            .iter()
            .map(|file| request(*file, how == Asking::Apart));
        let first = requests.collect::<String>().into_bytes();
        let stream = talking.connect(talking.http(), &first).await?;
        let mut reader = Reader::new(&stream, &talking, limit, came);
        let read = ask(&mut reader, files, how).await?;
        came = reader.came;
        if read == Read::Enough {
            leave(stream, matches!(plan.leaves, Leave::Reset(_)));
            return Ok(());
        }
        if matches!(how, Asking::Apart | Asking::HalfClosed) {
            reader.end().await?;
        }
    }
    Ok(())
}

/// The first request was said, or all of them if they are asked for at once.
async fn ask(
    reader: &mut Reader<'_>,
    files: &[(u32, usize)],
    how: Asking,
) -> Result<Read, Problem> {
    let at_once = matches!(how, Asking::Pipelined | Asking::HalfClosed);
    if how == Asking::HalfClosed {
        reader.stream.shutdown();
    }
    for (index, (number, len)) in files.iter().enumerate() {
        if !at_once && index > 0 {
            let request = request((*number, *len), how == Asking::Apart);
            reader.stream.write(Payload::Copy(request.as_bytes()));
        }
        let head = reader.head().await?;
        if !is_answer(&head, *len) {
            return Err(Problem::WrongHead(head));
        }
        if reader.content(content::of(*number, *len)).await? == Read::Enough {
            return Ok(Read::Enough);
        }
    }
    Ok(Read::All)
}

fn request((number, len): (u32, usize), closes: bool) -> String {
    let close = if closes { "Connection: close\r\n" } else { "" };
    let path = path(number, len);
    format!("GET {path} HTTP/1.1\r\nHost: world\r\n{close}\r\n")
}

fn is_answer(head: &str, len: usize) -> bool {
    head.starts_with("HTTP/1.1 200 ") && head.contains(&format!("\r\nContent-Length: {len}\r\n"))
}

pub(super) async fn post(talking: Talking<'_>, number: u32, len: usize) -> Result<(), Problem> {
    let plan = talking.plan;
    let head = format!("POST {POST_PATH} HTTP/1.1\r\nHost: world\r\nContent-Length: {len}\r\n\r\n");
    let stream = talking.connect(talking.http(), head.as_bytes()).await?;
    let sent = send(&stream, content::of(number, len), 0, limit(plan)).await?;
    if sent == Read::Enough {
        leave(stream, matches!(plan.leaves, Leave::Reset(_)));
        return Ok(());
    }
    let mut reader = Reader::new(&stream, &talking, usize::MAX, 0);
    let head = reader.head().await?;
    if !is_answer(&head, POST_ANSWER.len()) {
        return Err(Problem::WrongHead(head));
    }
    reader.content(POST_ANSWER.as_bytes()).await?;
    Ok(())
}

/// Sends bytes at the pace at which the network takes them, at most `limit`; `after` of them have been sent.
pub(super) async fn send(
    stream: &WorldStream,
    bytes: &[u8],
    mut after: usize,
    limit: usize,
) -> Result<Read, Problem> {
    for piece in bytes[after..].chunks(PIECE_BYTES) {
        if after >= limit {
            return Ok(Read::Enough);
        }
        let piece = &piece[..piece.len().min(limit - after)];
        stream.write(Payload::Copy(piece));
        let drained = stream.drained(QUEUED_BYTES).await;
        drained.map_err(Problem::Refused)?;
        after += piece.len();
    }
    Ok(if after < bytes.len() {
        Read::Enough
    } else {
        Read::All
    })
}

/// After how many bytes of content the client leaves.
pub(super) const fn limit(plan: &TalkPlan) -> usize {
    match plan.leaves {
        Leave::Whole => usize::MAX,
        Leave::Reset(after) | Leave::Close(after) => after,
    }
}

/// Bytes: what a client hands over at a time, and how much of it may wait when it hands over more. Neither is a
/// multiple of any segment.
const PIECE_BYTES: usize = 50_000;
const QUEUED_BYTES: u64 = 70_000;
