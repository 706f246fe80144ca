//! Compressed contents that are kept for the next requests.
//!
//! nginx compresses a file each time it sends it, which costs many times what sending costs. Here a file up to
//! `SOURCE_MAX` is compressed whole, once for each state of the file, and an answer that a cache keeps once for all workers
//! (`cache/compressed.rs`).

use crate::cache::compressed::Original;
use crate::content::{Content, Part};
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::{FileIdentity, Response};
use crate::whole_file;
use hashbrown::HashMap;
use mill_http::method::Method;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Shared;
use std::borrow::Cow;

/// A worker's compressed contents. Bounded in bytes; when it is full it is cleared.
#[derive(Debug, Default)]
pub struct CompressedContents {
    contents: HashMap<(FileIdentity, u8), Shared>,
    bytes: usize,
}

/// Puts the compressed content into the response, compressed now or earlier, if it is small enough to be compressed at
/// once. A file that cannot be read whole is left as it is: sending it will log the reason.
pub(super) async fn put_in_memory<E: Engine>(
    response: &mut Response<FileOf<E>>,
    request: &Request,
    local: &Local<E>,
) {
    let Some(level) = response.content.compression() else {
        return;
    };
    let Some(part) = response.content.only_part() else {
        return;
    };
    let len = part.len();
    // The answer to HEAD has no length, as nginx's: compressing would be wasted.
    if len > SOURCE_MAX || request.message.head.method == Method::Head {
        return;
    }
    let original = match part {
        Part::Bytes(Shared::Common(bytes), range) if range.len() == bytes.len() => {
            Original::of(request, bytes, level)
        }
        _ => None,
    };
    let key = response.identity.map(|identity| (identity, level));
    let kept = || key.and_then(|key| local.compressed.borrow().contents.get(&key).cloned());
    let of_cache = || original.as_ref()?.find(local).map(Shared::Common);
    let compressed = match kept().or_else(of_cache) {
        Some(kept) => kept,
        None => {
            let Some(bytes) = uncompressed(part, local).await else {
                return;
            };
            // Another request may have compressed it while this one waited for a disk.
            kept().unwrap_or_else(|| {
                let compressed = compress(&bytes, level, local);
                if let Some(key) = key {
                    local.compressed.borrow_mut().insert(key, &compressed);
                }
                let original = original.as_ref();
                let shared = original.and_then(|original| original.keep(&compressed, local));
                shared.map_or(compressed, Shared::Common)
            })
        }
    };
    response.content = Content::compressed(compressed, len);
    // Framed as by nginx, which compresses while it sends and does not know the length.
    response.streamed = true;
}

impl CompressedContents {
    fn insert(&mut self, key: (FileIdentity, u8), content: &Shared) {
        if self.bytes + content.len() > BYTES_MAX {
            self.contents.clear();
            self.bytes = 0;
        }
        self.bytes += content.len();
        let replaced = self.contents.insert(key, Shared::clone(content));
        self.bytes -= replaced.map_or(0, |replaced| replaced.len());
    }
}

/// The bytes of the part; `None` if it is of a file that cannot be read.
async fn uncompressed<'p, E: Engine>(
    part: &'p Part<FileOf<E>>,
    local: &Local<E>,
) -> Option<Cow<'p, [u8]>> {
    Some(match part {
        Part::Bytes(bytes, range) => Cow::Borrowed(bytes.get(range.clone()).unwrap_or_default()),
        Part::File { file, offset, len } => {
            Cow::Owned(whole_file::read(local, file, *offset, *len).await?)
        }
    })
}

fn compress<E: Engine>(bytes: &[u8], level: u8, local: &Local<E>) -> Shared {
    let mut compressed = local.take_buffer();
    let mut encoder = local.take_encoder(level);
    encoder.push(bytes, &mut compressed);
    encoder.finish(&mut compressed);
    local.put_encoder(level, encoder);
    let shared = Shared::from(compressed.as_slice());
    local.put_buffer(compressed);
    shared
}

/// The largest content that is compressed at once, in bytes: about 10 ms of work at level 1.
pub const SOURCE_MAX: u64 = 512 * 1024;

/// The most bytes of compressed contents that a worker keeps.
const BYTES_MAX: usize = 32 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_runtime::time::UnixTime;

    #[test]
    fn a_content_that_is_replaced_is_counted_once() {
        let mut contents = CompressedContents::default();
        let identity = FileIdentity {
            device: 1,
            inode: 2,
            modified: UnixTime::from_seconds(3),
            len: 4,
        };
        contents.insert((identity, 1), &Shared::from(&b"12345"[..]));
        contents.insert((identity, 1), &Shared::from(&b"123"[..]));
        assert_eq!(contents.bytes, 3);
        contents.insert((identity, 2), &Shared::from(&b"12"[..]));
        assert_eq!(contents.bytes, 5);
    }
}
