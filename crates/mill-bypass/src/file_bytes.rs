//! Files whose ranges can be read at once.

use mill_runtime::files::FileError;
use mill_stack::link::ExternalBytes;

/// An open file that the stack can read while it makes segments. It blocks on a cold disk, as `sendfile` does.
pub trait FileBytes: Clone + 'static {
    /// Reads at `offset` into `into`; returns how many bytes, 0 only at the end of the file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError>;

    /// Where `len` bytes at `offset` are mapped, from where a link can send them without a copy; `None` where they are not, or where
    /// reading is as good.
    fn mapped(&self, offset: u64, len: u64) -> Option<ExternalBytes<'_>>;
}

/// The file of a test that sends none.
#[cfg(test)]
#[derive(Clone)]
pub(crate) struct NoFile;

#[cfg(test)]
impl FileBytes for NoFile {
    fn read_at(&self, _offset: u64, _into: &mut [u8]) -> Result<usize, FileError> {
        Ok(0)
    }

    fn mapped(&self, _offset: u64, _len: u64) -> Option<ExternalBytes<'_>> {
        None
    }
}
