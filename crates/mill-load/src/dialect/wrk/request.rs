//! The request that wrk sends without a script.

use crate::request::{Batch, Rendered};
use crate::target::Url;
use std::sync::Arc;

/// Renders a GET for `url` with the `-H` lines. As in wrk, a line counts only with a colon and a blank after its name,
/// the last of equally written names wins, and there is no `Content-Length` without content.
pub(crate) fn render(url: &Url, lines: &[Vec<u8>]) -> Rendered {
    let authority = url.authority().into_bytes();
    let mut fields: Vec<(&[u8], &[u8])> = vec![(b"Host", &authority)];
    for (name, value) in lines.iter().filter_map(|line| field(line)) {
        match fields.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => fields.push((name, value)),
        }
    }
    let mut bytes = format!("GET {} HTTP/1.1\r\n", url.target).into_bytes();
    for (name, value) in fields {
        if name != b"Content-Length" {
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes.extend_from_slice(b"\r\n");
    Rendered {
        bytes: Arc::from(bytes),
        batch: Batch::ONE,
    }
}

/// Name and value of a `-H` argument, if wrk would use it.
pub(crate) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let value = line.get(colon + 1..)?.strip_prefix(b" ")?;
    Some((line.get(..colon)?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_has_the_fields_that_wrk_would_send() {
        let check = |url, lines: &[&str], expected: &str| {
            let lines: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
            let rendered = render(&Url::parse(url).unwrap(), &lines);
            assert_eq!(String::from_utf8_lossy(&rendered.bytes), expected);
        };
        check(
            "http://a:81/b?c",
            &["Connection: close"],
            "GET /b?c HTTP/1.1\r\nHost: a:81\r\nConnection: close\r\n\r\n",
        );
        check(
            "http://a",
            &[
                "X:1",
                "Host: b",
                "Y: 1",
                "Y: 2: 3",
                "Content-Length: 9",
                "Z",
            ],
            "GET / HTTP/1.1\r\nHost: b\r\nY: 2: 3\r\n\r\n",
        );
        check(
            "http://[::1]:8/",
            &[],
            "GET / HTTP/1.1\r\nHost: [::1]:8\r\n\r\n",
        );
    }
}
