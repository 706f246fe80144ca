//! The texts of Linux's error numbers, as in glibc, for `(2: No such file or directory)` in error logs.

use std::fmt;

/// An error number, shown as nginx shows it: number, colon, text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = TEXTS.iter().find(|(number, _)| *number == self.0);
        match known {
            Some((number, text)) => write!(formatter, "{number}: {text}"),
            None => write!(formatter, "{0}: Unknown error {0}", self.0),
        }
    }
}

/// The errors of calls on files, directories and sockets; the numbers are those of Linux on x86-64 and AArch64
/// (asm-generic/errno-base.h, errno.h), the texts those of `strerror` in glibc.
const TEXTS: &[(i32, &str)] = &[
    (1, "Operation not permitted"),
    (2, "No such file or directory"),
    (3, "No such process"),
    (4, "Interrupted system call"),
    (5, "Input/output error"),
    (6, "No such device or address"),
    (7, "Argument list too long"),
    (9, "Bad file descriptor"),
    (11, "Resource temporarily unavailable"),
    (12, "Cannot allocate memory"),
    (13, "Permission denied"),
    (14, "Bad address"),
    (16, "Device or resource busy"),
    (17, "File exists"),
    (18, "Invalid cross-device link"),
    (19, "No such device"),
    (20, "Not a directory"),
    (21, "Is a directory"),
    (22, "Invalid argument"),
    (23, "Too many open files in system"),
    (24, "Too many open files"),
    (26, "Text file busy"),
    (27, "File too large"),
    (28, "No space left on device"),
    (29, "Illegal seek"),
    (30, "Read-only file system"),
    (31, "Too many links"),
    (32, "Broken pipe"),
    (36, "File name too long"),
    (38, "Function not implemented"),
    (39, "Directory not empty"),
    (40, "Too many levels of symbolic links"),
    (71, "Protocol error"),
    (75, "Value too large for defined data type"),
    (84, "Invalid or incomplete multibyte or wide character"),
    (88, "Socket operation on non-socket"),
    (90, "Message too long"),
    (92, "Protocol not available"),
    (93, "Protocol not supported"),
    (95, "Operation not supported"),
    (97, "Address family not supported by protocol"),
    (98, "Address already in use"),
    (99, "Cannot assign requested address"),
    (100, "Network is down"),
    (101, "Network is unreachable"),
    (102, "Network dropped connection on reset"),
    (103, "Software caused connection abort"),
    (104, "Connection reset by peer"),
    (105, "No buffer space available"),
    (106, "Transport endpoint is already connected"),
    (107, "Transport endpoint is not connected"),
    (110, "Connection timed out"),
    (111, "Connection refused"),
    (112, "Host is down"),
    (113, "No route to host"),
    (114, "Operation already in progress"),
    (115, "Operation now in progress"),
    (116, "Stale file handle"),
    (122, "Disk quota exceeded"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_the_one_of_the_c_library() {
        for (number, _) in TEXTS {
            let system = std::io::Error::from_raw_os_error(*number).to_string();
            let expected = system.replace(&format!(" (os error {number})"), "");
            assert_eq!(
                Errno(*number).to_string(),
                format!("{number}: {expected}"),
                "{number}"
            );
        }
    }

    #[test]
    fn an_unknown_number_is_shown_as_the_c_library_does() {
        assert_eq!(Errno(4095).to_string(), "4095: Unknown error 4095");
    }
}
