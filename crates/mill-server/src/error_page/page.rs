//! The built-in pages, byte for byte nginx's but for the signature.

use crate::product::signature;
use mill_config::config::settings::ServerTokens;
use mill_http::status::Status;

/// The page of a status; `None` where nginx sends none.
pub(super) fn emit(status: Status, tokens: ServerTokens) -> Option<Vec<u8>> {
    let title = status.page_title()?;
    let signature = signature(tokens);
    // The codes that are sent as 400 say so in the heading, and what they are about below it.
    let (heading, explanation) = match status.0 {
        494..=497 => (
            "400 Bad Request",
            title.strip_prefix("400 ").unwrap_or(title),
        ),
        _ => (title, ""),
    };
    let mut page = format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{heading}</h1></center>\r\n"
    );
    if !explanation.is_empty() {
        page += &format!("<center>{explanation}</center>\r\n");
    }
    page += &format!("<hr><center>{signature}</center>\r\n</body>\r\n</html>\r\n");
    Some(page.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_nginx() {
        let check = |status: u16, expected: Option<&str>| {
            let page = emit(Status(status), ServerTokens::Off);
            let expected = expected.map(|page| page.replace('\n', "\r\n").into_bytes());
            assert_eq!(page, expected);
        };
        check(
            404,
            Some(
                "<html>\n<head><title>404 Not Found</title></head>\n<body>\n\
                 <center><h1>404 Not Found</h1></center>\n\
                 <hr><center>millstream</center>\n</body>\n</html>\n",
            ),
        );
        check(
            494,
            Some(
                "<html>\n<head><title>400 Request Header Or Cookie Too Large</title></head>\n<body>\n\
                 <center><h1>400 Bad Request</h1></center>\n\
                 <center>Request Header Or Cookie Too Large</center>\n\
                 <hr><center>millstream</center>\n</body>\n</html>\n",
            ),
        );
        check(204, None);
        check(418, None);
    }

    #[test]
    fn the_signature_is_what_server_tokens_says() {
        let foot = |tokens: ServerTokens| {
            let page = emit(Status::NOT_FOUND, tokens).unwrap();
            String::from_utf8(page).unwrap()
        };
        assert!(foot(ServerTokens::On).contains("<center>millstream/"));
        assert!(foot(ServerTokens::Off).contains("<center>millstream<"));
        assert!(foot(ServerTokens::Build).contains(")</center>"));
    }
}
