//! Where answers are kept: `proxy_cache_path` and its like.

use std::time::Duration;

use super::PassProtocol;
use crate::Text;

/// `proxy_cache_path`, `fastcgi_cache_path`, `uwsgi_cache_path` or `scgi_cache_path`: one cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePath {
    /// Its index in [`super::Http::cache_zones`].
    pub index: usize,
    /// Whose directive it is: `…_cache` of other protocols does not find it.
    pub protocol: PassProtocol,
    /// The name in `keys_zone=`.
    pub zone: Text,
    /// `keys_zone=`: bytes of the index; at least two pages.
    pub zone_bytes: u64,
    /// `memory=`, Millstream's own: bytes of content that are kept in memory.
    pub memory_bytes: u64,
    /// `inactive=`: an answer that nothing has asked for in so long is removed, fresh or not.
    pub inactive: Duration,
    /// The directory; an absolute path without a slash at its end.
    pub path: Text,
    /// `disk=off`, Millstream's own: nothing is kept in the directory.
    pub on_disk: bool,
    /// `levels=`: how many hexadecimal digits name a subdirectory, level by level; zeros are unused.
    pub levels: [u8; 3],
    /// `use_temp_path=`: files are written in the directory of `…_temp_path` first.
    pub use_temp_path: bool,
    /// `max_size=`: most bytes of files; `None` is no limit.
    pub max_size_bytes: Option<u64>,
    /// `min_free=`: bytes of the file system that stay free.
    pub min_free_bytes: u64,
    /// `manager_files=`, `manager_sleep=`, `manager_threshold=`: how files beyond `max_size` are removed.
    pub manager: CachePace,
    /// `loader_files=`, `loader_sleep=`, `loader_threshold=`: how files are found again at start.
    pub loader: CachePace,
    /// `purger=`: files of purged prefixes are removed at once, not when they are asked for.
    pub purger: bool,
    /// `purger_files=`, `purger_sleep=`, `purger_threshold=`: how they are removed.
    pub purger_pace: CachePace,
}

/// How fast a background task of a cache works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachePace {
    /// Most files in one turn.
    pub files: u64,
    /// Time between two turns.
    pub sleep: Duration,
    /// Longest turn.
    pub threshold: Duration,
}

impl CachePath {
    /// `memory=` if it is not written: 256 MiB.
    const MEMORY_BYTES: u64 = 256 << 20;
    /// `inactive=` if it is not written (nginx).
    const INACTIVE: Duration = Duration::from_secs(600);
    /// `manager_…=` and `loader_…=` if they are not written (nginx).
    const PACE: CachePace = CachePace {
        files: 100,
        sleep: Duration::from_millis(50),
        threshold: Duration::from_millis(200),
    };
    /// `purger_…=` if they are not written (NGINX Plus).
    const PURGER_PACE: CachePace = CachePace {
        files: 10,
        sleep: Duration::from_millis(50),
        threshold: Duration::from_millis(50),
    };

    /// A cache in a directory, with the defaults of all parameters, and no zone yet.
    pub(crate) fn new(protocol: PassProtocol, path: Text) -> Self {
        Self {
            index: 0,
            protocol,
            zone: Text::default(),
            zone_bytes: 0,
            memory_bytes: Self::MEMORY_BYTES,
            inactive: Self::INACTIVE,
            path,
            on_disk: true,
            levels: [0; 3],
            use_temp_path: true,
            max_size_bytes: None,
            min_free_bytes: 0,
            manager: Self::PACE,
            loader: Self::PACE,
            purger: false,
            purger_pace: Self::PURGER_PACE,
        }
    }
}
