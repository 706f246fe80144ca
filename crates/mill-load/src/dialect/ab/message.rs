//! What ab prints when a run ends early.

use super::strerror;
use crate::failure::Failure;
use mill_runtime::stream::StreamError;

/// A line on stderr, perhaps with others before it, and the exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) status: u8,
}

/// ab's message for a failure. ab notices a refused connect when it reads, so the message names that call.
pub(super) fn of(failure: Failure) -> Message {
    match failure {
        Failure::Connect(error) | Failure::Stream(error) => receive(error),
        Failure::ConnectTimeout | Failure::Timeout => Message::new(
            "apr_pollset_poll",
            "The timeout specified has expired",
            TIMEUP,
        ),
        Failure::NoDescriptor => Message::of_code("socket", EMFILE),
        Failure::NoPort => {
            let message = Message::of_code("apr_socket_connect()", EADDRNOTAVAIL);
            Message {
                text: format!("\nTest aborted after 10 failures\n\n{}", message.text),
                ..message
            }
        }
        Failure::EndedEarly => Message::new("apr_socket_recv", "End of file found", EOF),
        Failure::Handshake => Message::fatal("SSL handshake failed (1)."),
        // No option of ab's sets the expected content.
        Failure::WrongContent(_) => Message::new("the response", &failure.to_string(), 1),
        Failure::Garbage(fault) => Message::new("the response is not HTTP", &fault.to_string(), 1),
    }
}

/// The source address of `-B` is not one of this machine.
pub(super) fn bind() -> Message {
    Message::of_code("bind", EADDRNOTAVAIL)
}

/// A name that could not be resolved; `reason` is the platform's message.
pub(super) fn unresolved(host: &str, reason: &str) -> Message {
    let what = format!("apr_sockaddr_info_get() for {host}");
    let known = RESOLVER_ERRORS
        .iter()
        .find(|(_, text)| reason.contains(text));
    match known {
        Some((code, text)) => Message::new(&what, text, RESOLVER_BASE + code),
        None => Message::new(&what, reason, RESOLVER_BASE + NONAME),
    }
}

/// No connections at all: ab polls an empty set.
pub(super) fn no_connections() -> Message {
    Message::of_code("apr_pollset_poll", EINVAL)
}

impl Message {
    /// A line without a number.
    pub(super) fn fatal(text: &str) -> Self {
        Self {
            text: String::from(text),
            status: super::FATAL,
        }
    }

    fn new(call: &str, reason: &str, code: i32) -> Self {
        let [status, ..] = code.to_le_bytes();
        Self {
            text: format!("{call}: {reason} ({code})"),
            status,
        }
    }

    fn of_code(call: &str, code: i32) -> Self {
        Self::new(call, &strerror::of_code(code), code)
    }
}

fn receive(error: StreamError) -> Message {
    let code = match error {
        StreamError::Reset => ECONNRESET,
        StreamError::Refused => ECONNREFUSED,
        StreamError::Unreachable => EHOSTUNREACH,
        StreamError::Truncated | StreamError::Unfinished | StreamError::Tls => EIO,
        StreamError::Other(code) => code,
    };
    Message::of_code("apr_socket_recv", code)
}

/// Linux's error numbers (asm-generic/errno-base.h and errno.h).
const EIO: i32 = 5;
const EINVAL: i32 = 22;
const EMFILE: i32 = 24;
const EADDRNOTAVAIL: i32 = 99;
const ECONNRESET: i32 = 104;
const ECONNREFUSED: i32 = 111;
const EHOSTUNREACH: i32 = 113;

/// APR's own numbers (apr_errno.h): the time is up, the end of a file.
const TIMEUP: i32 = 70_007;
const EOF: i32 = 70_014;

/// The first of APR's numbers of the resolver; glibc's error numbers, made positive (netdb.h), are added.
const RESOLVER_BASE: i32 = 670_000;
const NONAME: i32 = 2;
const RESOLVER_ERRORS: [(i32, &str); 6] = [
    (NONAME, "Name or service not known"),
    (3, "Temporary failure in name resolution"),
    (4, "Non-recoverable failure in name resolution"),
    (5, "No address associated with hostname"),
    (10, "Memory allocation failure"),
    (11, "System error"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: Message, text: &str, status: u8) {
        assert_eq!((message.text.as_str(), message.status), (text, status));
    }

    #[test]
    fn failures_have_abs_messages() {
        let refused = "apr_socket_recv: Connection refused (111)";
        check(of(Failure::Connect(StreamError::Refused)), refused, 111);
        let reset = "apr_socket_recv: Connection reset by peer (104)";
        check(of(Failure::Stream(StreamError::Reset)), reset, 104);
        let timeout = "apr_pollset_poll: The timeout specified has expired (70007)";
        check(of(Failure::Timeout), timeout, 119);
        let files = "socket: Too many open files (24)";
        check(of(Failure::NoDescriptor), files, 24);
        check(
            of(Failure::NoPort),
            "\nTest aborted after 10 failures\n\n\
             apr_socket_connect(): Cannot assign requested address (99)",
            99,
        );
        check(bind(), "bind: Cannot assign requested address (99)", 99);
        let nothing = "apr_pollset_poll: Invalid argument (22)";
        check(no_connections(), nothing, 22);
    }

    #[test]
    fn names_that_are_not_resolved_have_the_resolvers_number() {
        check(
            unresolved("a", "failed to look up: Name or service not known"),
            "apr_sockaddr_info_get() for a: Name or service not known (670002)",
            50,
        );
        check(
            unresolved("a", "Temporary failure in name resolution"),
            "apr_sockaddr_info_get() for a: Temporary failure in name resolution (670003)",
            51,
        );
        check(
            unresolved("a", "there is no such host"),
            "apr_sockaddr_info_get() for a: there is no such host (670002)",
            50,
        );
    }
}
