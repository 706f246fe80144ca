//! Requests as bytes, made from the command line.

use crate::native::options::{Message, Version};
use crate::request::{Batch, Rendered};
use crate::target::Url;
use mill_metrics::base64;

/// Renders one request. Given fields replace ours of the same name.
pub(crate) fn render(
    message: &Message,
    url: &Url,
    (method, target): (&str, &str),
    body: Option<&[u8]>,
) -> Rendered {
    let version = match message.version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
    };
    let mut head = format!("{method} {target} HTTP/{version}\r\n");
    let mut own = |name: &str, value: &str| {
        let given = message.headers.iter();
        if !given
            .clone()
            .any(|(given, _)| given.eq_ignore_ascii_case(name))
        {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    };
    own("Host", &url.authority());
    own("User-Agent", USER_AGENT);
    if let Some(user) = &message.user {
        let credentials = base64::encode(user.as_bytes());
        own("Authorization", &format!("Basic {credentials}"));
    }
    match (message.keep_alive, message.version) {
        (false, _) => own("Connection", "close"),
        (true, Version::Http10) => own("Connection", "keep-alive"),
        (true, Version::Http11) => {}
    }
    if let Some(body) = body {
        own("Content-Length", &body.len().to_string());
    }
    for (name, value) in &message.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body.unwrap_or_default());
    Rendered {
        bytes: bytes.into(),
        batch: Batch {
            responses: 1,
            is_head: method == "HEAD",
        },
    }
}

/// RFC 9110 10.1.5: a server's operator sees where the load comes from.
const USER_AGENT: &str = concat!("millstream/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::options::Body;

    fn message() -> Message {
        Message {
            method: String::from("GET"),
            version: Version::Http11,
            headers: Vec::new(),
            body: Body::None,
            user: None,
            keep_alive: true,
            replay: None,
            expect: None,
        }
    }

    #[track_caller]
    fn check(message: &Message, method: &str, body: Option<&str>, expected: &str) {
        let url = Url::parse("http://a.example:81/x?y").unwrap();
        let body = body.map(str::as_bytes);
        let rendered = render(message, &url, (method, &url.target), body);
        let text = String::from_utf8(rendered.bytes.to_vec()).unwrap();
        let expected = expected.replace('\n', "\r\n");
        let expected = expected.replace("{agent}", USER_AGENT);
        assert_eq!(text, expected);
        assert_eq!(rendered.batch.is_head, method == "HEAD");
    }

    #[test]
    fn a_request_has_what_a_server_needs() {
        check(
            &message(),
            "GET",
            None,
            "GET /x?y HTTP/1.1\nHost: a.example:81\nUser-Agent: {agent}\n\n",
        );
        check(
            &message(),
            "HEAD",
            None,
            "HEAD /x?y HTTP/1.1\nHost: a.example:81\nUser-Agent: {agent}\n\n",
        );
    }

    #[test]
    fn options_become_fields() {
        let message = Message {
            version: Version::Http10,
            headers: vec![(String::from("X-A"), String::from("1"))],
            user: Some(String::from("Aladdin:open sesame")),
            ..message()
        };
        check(
            &message,
            "POST",
            Some("a=b"),
            "POST /x?y HTTP/1.0\nHost: a.example:81\nUser-Agent: {agent}\n\
             Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\nConnection: keep-alive\n\
             Content-Length: 3\nX-A: 1\n\na=b",
        );
    }

    #[test]
    fn fields_that_were_given_replace_ours() {
        let given = ["host", "user-agent", "CONNECTION"];
        let message = Message {
            headers: given
                .map(|name| (String::from(name), String::from("z")))
                .to_vec(),
            keep_alive: false,
            ..message()
        };
        check(
            &message,
            "GET",
            None,
            "GET /x?y HTTP/1.1\nhost: z\nuser-agent: z\nCONNECTION: z\n\n",
        );
    }
}
