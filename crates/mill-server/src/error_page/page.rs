//! The built-in pages, byte for byte nginx's except for the signature.

use crate::product::signature;
use mill_config::config::settings::ServerTokens;
use mill_http::escape::{EscapeSet, escape_uri};
use mill_http::status::Status;

/// The page of a status; `None` where nginx sends none. `padded` if it is for a browser that does not show a short
/// error page.
pub(super) fn emit(status: Status, tokens: ServerTokens, padded: bool) -> Option<Vec<u8>> {
    let title = status.page_title()?;
    let signature = signature(tokens);
    // The codes that are sent as 400 have it in the heading, and their reason below it.
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
    if padded && status.0 >= 400 {
        page += &PADDING.repeat(PADDING_COUNT);
    }
    Some(page.into_bytes())
}

/// The page that redirects to `location`, for browsers that are not redirected by a status.
pub(super) fn emit_refresh(location: &[u8]) -> Vec<u8> {
    let mut page = b"<html><head><meta http-equiv=\"Refresh\" content=\"0; URL=".to_vec();
    escape_uri(EscapeSet::Refresh, location, &mut page);
    page.extend_from_slice(b"\"></head><body></body></html>\r\n");
    page
}

/// One line of padding, and the number of them, as in nginx: with them any page is longer than 512 bytes; Internet
/// Explorer does not show shorter ones.
const PADDING: &str = "<!-- a padding to disable MSIE and Chrome friendly error page -->\r\n";
const PADDING_COUNT: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_nginx() {
        let check = |status: u16, expected: Option<&str>| {
            let page = emit(Status(status), ServerTokens::Off, false);
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
            let page = emit(Status::NOT_FOUND, tokens, false).unwrap();
            String::from_utf8(page).unwrap()
        };
        assert!(foot(ServerTokens::On).contains("<center>millstream/"));
        assert!(foot(ServerTokens::Off).contains("<center>millstream<"));
        assert!(foot(ServerTokens::Build).contains(")</center>"));
    }

    #[test]
    fn pages_of_errors_are_padded_beyond_512_bytes() {
        let check = |status: u16, lines: usize| {
            let page = emit(Status(status), ServerTokens::Off, true).unwrap();
            let page = String::from_utf8(page).unwrap();
            assert_eq!(page.matches(PADDING).count(), lines, "{status}");
            assert_eq!(page.len() > 512, lines > 0, "{status}");
        };
        check(301, 0);
        check(308, 0);
        check(400, 6);
        check(404, 6);
        check(494, 6);
        check(503, 6);
        assert_eq!(emit(Status(418), ServerTokens::Off, true), None);
    }

    #[test]
    fn a_page_that_leads_on_holds_nothing_but_an_escaped_link() {
        let check = |location: &str, expected: &str| {
            let page = String::from_utf8(emit_refresh(location.as_bytes())).unwrap();
            let start = "<html><head><meta http-equiv=\"Refresh\" content=\"0; URL=";
            let end = "\"></head><body></body></html>\r\n";
            assert_eq!(page, [start, expected, end].concat());
        };
        check("/x?a=b'c&\"d<é", "/x?a=b%27c&%22d%3C%C3%A9");
        check("http://h/%20#a", "http://h/%20#a");
        check("", "");
    }
}
