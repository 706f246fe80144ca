//! The request, byte for byte as ab sends it.

use super::arguments::{Method, Options};

/// A request's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// No content follows the response's head.
    pub(super) is_head: bool,
}

/// The head does not fit in ab's buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Renders the request of `options`: HTTP/1.0; given fields come before those that ab adds, and replace them.
pub(super) fn render(options: &Options) -> Result<Request, TooLong> {
    let mut head = Vec::new();
    let mut push = |parts: &[&[u8]]| parts.iter().for_each(|part| head.extend_from_slice(part));
    let target = match options.proxy {
        Some(_) => &options.url.full,
        None => &options.url.path,
    };
    push(&[options.method.name(), b" ", target, b" HTTP/1.0\r\n"]);
    if options.keep_alive {
        push(&[b"Connection: Keep-Alive\r\n"]);
    }
    if let Some(cookie) = &options.cookie {
        push(&[b"Cookie: ", cookie, b"\r\n"]);
    }
    push(&[&options.authorization]);
    if let Some(body) = &options.body {
        let length = body.len().to_string();
        let kind = options.content_type.as_deref().unwrap_or(b"text/plain");
        push(&[b"Content-length: ", length.as_bytes(), b"\r\n"]);
        push(&[b"Content-type: ", kind, b"\r\n"]);
    }
    push(&[&options.fields]);
    let is_given = |name: &[u8]| {
        let mut lines = options.fields.split(|byte| *byte == b'\n');
        lines.any(|line| {
            let start = line.get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name))
        })
    };
    if !is_given(b"Host:") {
        push(&[b"Host: ", &options.url.host_field, b"\r\n"]);
    }
    if !is_given(b"User-Agent:") {
        push(&[b"User-Agent: ApacheBench/2.3\r\n"]);
    }
    if !is_given(b"Accept:") {
        push(&[b"Accept: */*\r\n"]);
    }
    push(&[b"\r\n"]);
    if head.len() >= HEAD_MAX_BYTES {
        return Err(TooLong);
    }
    Ok(Request {
        head,
        body: options.body.clone().unwrap_or_default(),
        is_head: match &options.method {
            Method::Head => true,
            Method::Custom(name) => name == b"HEAD",
            _ => false,
        },
    })
}

/// Bytes of a head with its terminator: the size of ab's buffer. ab itself truncates a longer one and waits for an
/// answer that can't come.
const HEAD_MAX_BYTES: usize = 8192;

#[cfg(test)]
mod tests {
    use super::super::arguments::parse;
    use super::*;

    fn rendered(line: &[&str]) -> Result<Request, TooLong> {
        let arguments: Vec<Vec<u8>> = line.iter().copied().map(Vec::from).collect();
        let parsed = parse(&arguments, &|_| Ok(b"a=1&b=2".to_vec()));
        render(&parsed.outcome.expect("a command line with a run"))
    }

    /// What ab 2.3 of Debian 12 sent for the same options to a server on port 8080.
    #[track_caller]
    fn check(line: &[&str], expected: &str) {
        let request = rendered(line).unwrap();
        let bytes = [request.head, request.body].concat();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    const URL: &str = "http://127.0.0.1:8080/p?q";

    #[test]
    fn a_plain_request_is_abs() {
        let tail = "Host: 127.0.0.1:8080\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n";
        check(&[URL], &format!("GET /p?q HTTP/1.0\r\n{tail}"));
        let keep = "Connection: Keep-Alive\r\n";
        check(&["-k", URL], &format!("GET /p?q HTTP/1.0\r\n{keep}{tail}"));
        check(&["-i", URL], &format!("HEAD /p?q HTTP/1.0\r\n{tail}"));
        let patch = format!("PATCH /p?q HTTP/1.0\r\n{tail}");
        check(&["-m", "PATCH", URL], &patch);
        check(
            &["localhost:8080/a#b"],
            &format!(
                "GET /a#b HTTP/1.0\r\n{}",
                tail.replace("127.0.0.1", "localhost")
            ),
        );
        let spaced = format!("GET /a b HTTP/1.0\r\n{tail}");
        check(&["http://127.0.0.1:8080/a b"], &spaced);
    }

    #[test]
    fn fields_stand_where_ab_puts_them() {
        let ours = "User-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n";
        let tail = format!("Host: 127.0.0.1:8080\r\n{ours}");
        let get = "GET /p?q HTTP/1.0\r\n";
        check(
            &["-C", "a=1", "-C", "b=2", URL],
            &format!("{get}Cookie: b=2\r\n{tail}"),
        );
        check(
            &["-H", "X-A: 1", "-H", "Host: other", "-H", "x-b: 2", URL],
            &format!("{get}X-A: 1\r\nHost: other\r\nx-b: 2\r\n{ours}"),
        );
        check(
            &["-H", "user-agent:me", "-H", "ACCEPT: text/html", URL],
            &format!("{get}user-agent:me\r\nACCEPT: text/html\r\nHost: 127.0.0.1:8080\r\n\r\n"),
        );
        check(
            &["-A", " user:pass", URL],
            &format!("{get}Authorization: Basic dXNlcjpwYXNz\r\n{tail}"),
        );
        check(
            &["-P", "u:p", "-A", "a:b", URL],
            &format!("{get}Proxy-Authorization: Basic dTpw\r\nAuthorization: Basic YTpi\r\n{tail}"),
        );
        check(
            &["-A", "", URL],
            &format!("{get}Authorization: Basic \r\n{tail}"),
        );
    }

    #[test]
    fn bodies_have_their_length_and_kind() {
        let tail =
            "Host: 127.0.0.1:8080\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\na=1&b=2";
        let plain = "Content-length: 7\r\nContent-type: text/plain\r\n";
        for (options, method) in [
            (&["-p", "f"][..], "POST"),
            (&["-u", "f"], "PUT"),
            (&["-p", "f", "-m", "PATCH"], "PATCH"),
        ] {
            let line = [options, &[URL]].concat();
            check(&line, &format!("{method} /p?q HTTP/1.0\r\n{plain}{tail}"));
        }
        check(
            &[
                "-p",
                "f",
                "-T",
                "application/json",
                "-k",
                "-C",
                "c=d",
                "-A",
                "a:b",
                "-H",
                "X: y",
                URL,
            ],
            &format!(
                "POST /p?q HTTP/1.0\r\nConnection: Keep-Alive\r\nCookie: c=d\r\nAuthorization: Basic YTpi\r\n\
                 Content-length: 7\r\nContent-type: application/json\r\nX: y\r\n{tail}"
            ),
        );
    }

    #[test]
    fn a_proxy_is_asked_for_the_url_as_it_was_given() {
        let ours = "User-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n";
        check(
            &["-X", "p:3128", "http://www.example.com/logo.svg"],
            &format!(
                "GET http://www.example.com/logo.svg HTTP/1.0\r\nHost: www.example.com\r\n{ours}"
            ),
        );
        check(
            &["-X", "p:3128", "www.example.com:81/x"],
            &format!("GET www.example.com:81/x HTTP/1.0\r\nHost: www.example.com:81\r\n{ours}"),
        );
    }

    #[test]
    fn a_head_is_as_long_as_abs_buffer_allows() {
        let with = |length: usize| rendered(&["-H", &"x".repeat(length), "http://a/"]);
        let base = with(0).unwrap().head.len();
        assert_eq!(with(8191 - base).unwrap().head.len(), 8191);
        assert_eq!(with(8192 - base), Err(TooLong));
    }

    #[test]
    fn a_custom_method_named_head_expects_no_content_either() {
        assert!(rendered(&["-m", "HEAD", URL]).unwrap().is_head);
        assert!(rendered(&["-i", URL]).unwrap().is_head);
        assert!(!rendered(&["-m", "head", URL]).unwrap().is_head);
    }
}
