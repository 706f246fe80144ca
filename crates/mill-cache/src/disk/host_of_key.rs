//! Whether a key is of a host.

/// Whether the key's text names this host where nginx's users put it: at the begin, or behind a scheme, with `://`, blanks or nothing
/// between: `http://shop.example/a`, `httpshop.example/a`, `https shop.example /a`, `shop.example/a`. Without a port in `host` any
/// port will do. A key that could be read in two ways is of both hosts.
pub fn is_of_host(key: &[u8], host: &[u8]) -> bool {
    let schemes: [&[u8]; 3] = [b"", b"http", b"https"];
    schemes.iter().any(|scheme| {
        let rest = key.strip_prefix(*scheme);
        rest.is_some_and(|rest| begins_with_host(rest, host))
    })
}

fn begins_with_host(text: &[u8], host: &[u8]) -> bool {
    let text = text.strip_prefix(b"://").unwrap_or(text).trim_ascii_start();
    let Some((found, rest)) = text.split_at_checked(host.len()) else {
        return false;
    };
    let ends = match rest.first() {
        None => true,
        // An address of IPv6 goes on behind such a byte, unless it is in brackets.
        Some(b':') => host.ends_with(b"]") || !host.contains(&b':'),
        Some(byte) => matches!(byte, b'/' | b'?' | b'#' | b'|') || byte.is_ascii_whitespace(),
    };
    ends && found.eq_ignore_ascii_case(host)
}

#[cfg(test)]
mod tests {
    use super::is_of_host;

    #[test]
    fn the_host_of_a_key_stands_behind_its_scheme() {
        let check = |key: &str, host: &str, expected| {
            assert_eq!(
                is_of_host(key.as_bytes(), host.as_bytes()),
                expected,
                "{key} {host}"
            );
        };
        for key in [
            "http://shop.example/a",
            "https://SHOP.example",
            "http://shop.example:8080/a",
            "httpshop.example/a",
            "https shop.example /a",
            "shop.example/a?b",
            "shop.example|/a",
        ] {
            check(key, "shop.example", true);
            check(key, "shop.example.org", false);
            check(key, "example", false);
        }
        check("http://shop.example/a", "hop.example", false);
        // That may be "http" and "shop", or "https" and "hop".
        check("httpshop.example/a", "hop.example", true);
        check("http://shop.example.org/a", "shop.example", false);
        check(
            "http://other/?u=http://shop.example/",
            "shop.example",
            false,
        );
        check("http://shop.example:8080/a", "shop.example:8080", true);
        check("http://shop.example:8081/a", "shop.example:8080", false);
        check("http://[::1]:80/a", "[::1]", true);
        check("httpbin.org/a", "httpbin.org", true);
        check("http://shop.example/a", "hop.example", false);
        // It could be of either.
        check("httpshop.example/a", "hop.example", true);
        check("/a", "shop.example", false);
    }
}
