//! Directories of temporary files.

use crate::Text;

/// `client_body_temp_path`, `proxy_temp_path` and their like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TempPath {
    /// An absolute path.
    pub path: Text,
    /// How many digits of the file number name a subdirectory, level by level; zeros are unused.
    pub levels: [u8; 3],
}
