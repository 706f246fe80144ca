//! Reads a whole file into memory.

use crate::local::{FileOf, Local};
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;

/// Reads `len` bytes from `offset`; `None` if the file is shorter than that or cannot be read. The caller bounds `len`.
pub async fn read<E: Engine>(
    local: &Local<E>,
    file: &FileOf<E>,
    offset: u64,
    len: u64,
) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    let mut done = 0;
    while done < bytes.len() {
        let rest = bytes.get_mut(done..)?;
        let read = local
            .engine
            .files()
            .read_at(file, offset + done as u64, rest);
        done += read.await.ok().filter(|count| *count > 0)?;
    }
    Some(bytes)
}
