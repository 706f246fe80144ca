//! The meaning of a failed system call for the caller.

use mill_runtime::files::{FileError, FileErrorKind};
use std::io;

pub(super) fn failed(call: &'static str) -> impl Fn(io::Error) -> FileError {
    move |error| {
        let code = error.raw_os_error().unwrap_or(0);
        FileError {
            kind: kind_of(code),
            call,
            code,
        }
    }
}

/// The call must not wait, and would have to.
pub(super) const fn is_cold(error: &FileError) -> bool {
    error.code == EAGAIN
}

/// The kernel or the file system does not know what was asked for, or a sandbox forbids it. Only of a call that fails
/// in these ways for no other reason.
pub(super) const fn is_unsupported(code: i32) -> bool {
    matches!(code, EOPNOTSUPP | ENOSYS | EINVAL | EPERM)
}

/// No descriptor is left.
pub(super) fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

fn kind_of(code: i32) -> FileErrorKind {
    match code {
        ENOENT => FileErrorKind::NotFound,
        ENOTDIR => FileErrorKind::NotDirectory,
        ENAMETOOLONG => FileErrorKind::NameTooLong,
        EACCES | EPERM => FileErrorKind::PermissionDenied,
        ELOOP => FileErrorKind::Symlink,
        EMFILE | ENFILE => FileErrorKind::Exhausted,
        _ => FileErrorKind::Other,
    }
}

/// Linux's error numbers (asm-generic/errno.h), the same on every architecture for these.
const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EAGAIN: i32 = 11;
const EACCES: i32 = 13;
const ENOTDIR: i32 = 20;
const EINVAL: i32 = 22;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENAMETOOLONG: i32 = 36;
const ELOOP: i32 = 40;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_that_forbids_a_call_does_not_support_it_and_a_lack_of_descriptors_says_nothing() {
        for code in [EOPNOTSUPP, ENOSYS, EINVAL, EPERM] {
            assert!(is_unsupported(code), "{code}");
        }
        for code in [EAGAIN, EMFILE, ENFILE, ENOENT] {
            assert!(!is_unsupported(code), "{code}");
        }
    }
}
