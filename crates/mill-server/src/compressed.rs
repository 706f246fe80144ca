//! Compressed contents that are kept for those who ask again.
//!
//! nginx compresses a file each time it sends it, which costs many times what sending costs. Here a file up to
//! `SOURCE_MAX` is compressed whole, once for each state that it is found in.

use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::{Content, FileIdentity, Response};
use crate::whole_file;
use hashbrown::HashMap;
use mill_http::method::Method;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Shared;

/// A worker's compressed contents. Bounded in bytes; when it is full it starts anew.
#[derive(Debug, Default)]
pub struct CompressedContents {
    contents: HashMap<(FileIdentity, u8), Shared>,
    bytes: usize,
}

/// Puts the compressed content into the response, made now or kept from before, if it is small enough to be made at
/// once. A content that cannot be read whole stays as it is: sending it will show why.
pub async fn put_in_memory<E: Engine>(
    local: &Local<E>,
    request: &mut Request,
    response: &mut Response<FileOf<E>>,
) {
    let Content::Gzip { file, len, level } = &response.content else {
        return;
    };
    let (len, level) = (*len, *level);
    // The answer to HEAD says no length, as nginx's does not: nothing is compressed for it.
    if len > SOURCE_MAX || request.message.head.method == Method::Head {
        return;
    }
    let key = response.identity.map(|identity| (identity, level));
    let kept = key.and_then(|key| local.compressed.borrow().contents.get(&key).cloned());
    let compressed = match kept {
        Some(kept) => kept,
        None => {
            let Some(content) = whole_file::read(local, file, 0, len).await else {
                return;
            };
            let compressed = compress(local, &content, level);
            if let Some(key) = key {
                local.compressed.borrow_mut().insert(key, &compressed);
            }
            compressed
        }
    };
    request.sent.uncompressed_bytes = Some(len);
    let range = 0..compressed.len();
    response.content = Content::Bytes(compressed, range);
    // As nginx frames it, who does not know how long it will be.
    response.streamed = true;
}

impl CompressedContents {
    fn insert(&mut self, key: (FileIdentity, u8), content: &Shared) {
        if self.bytes + content.len() > BYTES_MAX {
            self.contents.clear();
            self.bytes = 0;
        }
        self.bytes += content.len();
        self.contents.insert(key, Shared::clone(content));
    }
}

fn compress<E: Engine>(local: &Local<E>, content: &[u8], level: u8) -> Shared {
    let mut compressed = local.take_buffer();
    let mut encoder = local.take_encoder(level);
    encoder.push(content, &mut compressed);
    encoder.finish(&mut compressed);
    local.put_encoder(level, encoder);
    let shared = Shared::from(compressed.as_slice());
    local.put_buffer(compressed);
    shared
}

/// The largest file that is compressed at once, in bytes: about 10 ms of work at level 1.
pub const SOURCE_MAX: u64 = 512 * 1024;

/// The most bytes of compressed contents that a worker keeps.
const BYTES_MAX: usize = 32 * 1024 * 1024;
