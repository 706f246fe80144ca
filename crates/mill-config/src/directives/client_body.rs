//! Contents of requests: `client_max_body_size`, `client_body_*`.

use std::time::Duration;

use crate::config::TempPath;
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, Notice, once};
use crate::directives::pass::value::temp_path;

group! {
    /// Contents of requests.
    ClientBodySettings {
        /// `client_max_body_size` in bytes; 0 is no limit.
        max_size: u64 = 1 << 20,
        /// `client_body_buffer_size` in bytes: two pages.
        buffer_size: u64 = 8 << 10,
        /// `client_body_timeout`, between two reads.
        timeout: Duration = Duration::from_secs(60),
        /// `client_body_in_single_buffer`.
        in_single_buffer: bool = false,
        /// `client_body_in_file_only`.
        in_file_only: ClientBodyFile = ClientBodyFile::Off,
        /// `client_body_temp_path`.
        temp_path: TempPath = TempPath::default(),
    }
}

/// `client_body_in_file_only`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientBodyFile {
    /// Bodies may stay in memory.
    Off,
    /// All bodies go to files, which are kept.
    On,
    /// All bodies go to files, which are removed.
    Clean,
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "client_max_body_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1m",
        Apply::Offset(|s| &mut s.client_body.max_size),
        "Longest content of a request; then 413. 0 is no limit.",
    ),
    once(
        "client_body_buffer_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "16k",
        Apply::Size(|s| &mut s.client_body.buffer_size),
        "Content that stays in memory.",
    ),
    once(
        "client_body_timeout",
        ANY_LEVEL,
        Arity::Exactly(1),
        "60s",
        Apply::Milliseconds(|s| &mut s.client_body.timeout),
        "Longest time between two reads of content; then 408.",
    ),
    once(
        "client_body_in_single_buffer",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.client_body.in_single_buffer),
        "Keep content in one piece.",
    )
    .unread("content in memory is always in one piece", Notice::Spared),
    once(
        "client_body_in_file_only",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::With(|r, s| {
            let choices = [
                ("off", ClientBodyFile::Off),
                ("on", ClientBodyFile::On),
                ("clean", ClientBodyFile::Clean),
            ];
            r.level.settings.client_body.in_file_only = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "Keep content in files.",
    ),
    once(
        "client_body_temp_path",
        ANY_LEVEL,
        Arity::Between(1, 4),
        "client_body_temp",
        Apply::With(|r, s| {
            r.level.settings.client_body.temp_path = Some(temp_path(r, s)?);
            Ok(())
        }),
        "Directory for contents of requests, and digits of its subdirectories.",
    ),
];
