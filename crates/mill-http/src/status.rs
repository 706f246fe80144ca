//! Status codes, with the reason phrases exactly as nginx prints them.

/// A status code, 100 to 999. nginx's own codes (444, 494 to 499) are values too; clients see [`Status::on_the_wire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u16);

macro_rules! statuses {
    ($($name:ident $code:literal $doc:literal,)*) => {
        impl Status {
            $(#[doc = $doc] pub const $name: Self = Self($code);)*
        }
    };
}

statuses! {
    CONTINUE 100 "RFC 9110 15.2.1",
    SWITCHING_PROTOCOLS 101 "RFC 9110 15.2.2",
    EARLY_HINTS 103 "RFC 8297 2",
    OK 200 "RFC 9110 15.3.1",
    CREATED 201 "RFC 9110 15.3.2",
    NO_CONTENT 204 "RFC 9110 15.3.5",
    PARTIAL_CONTENT 206 "RFC 9110 15.3.7",
    MOVED_PERMANENTLY 301 "RFC 9110 15.4.2",
    FOUND 302 "RFC 9110 15.4.3; nginx says \"Moved Temporarily\"",
    SEE_OTHER 303 "RFC 9110 15.4.4",
    NOT_MODIFIED 304 "RFC 9110 15.4.5",
    TEMPORARY_REDIRECT 307 "RFC 9110 15.4.8",
    PERMANENT_REDIRECT 308 "RFC 9110 15.4.9",
    BAD_REQUEST 400 "RFC 9110 15.5.1",
    UNAUTHORIZED 401 "RFC 9110 15.5.2",
    FORBIDDEN 403 "RFC 9110 15.5.4",
    NOT_FOUND 404 "RFC 9110 15.5.5",
    METHOD_NOT_ALLOWED 405 "RFC 9110 15.5.6",
    REQUEST_TIMEOUT 408 "RFC 9110 15.5.9",
    CONFLICT 409 "RFC 9110 15.5.10",
    GONE 410 "RFC 9110 15.5.11",
    LENGTH_REQUIRED 411 "RFC 9110 15.5.12",
    PRECONDITION_FAILED 412 "RFC 9110 15.5.13",
    CONTENT_TOO_LARGE 413 "RFC 9110 15.5.14",
    URI_TOO_LONG 414 "RFC 9110 15.5.15",
    UNSUPPORTED_MEDIA_TYPE 415 "RFC 9110 15.5.16",
    RANGE_NOT_SATISFIABLE 416 "RFC 9110 15.5.17",
    MISDIRECTED_REQUEST 421 "RFC 9110 15.5.20",
    TOO_MANY_REQUESTS 429 "RFC 6585 4",
    CLOSE 444 "nginx: close the connection without an answer",
    REQUEST_HEADER_TOO_LARGE 494 "nginx: the head exceeds its buffers; sent as 400",
    CERTIFICATE_ERROR 495 "nginx: the client's certificate is bad; sent as 400",
    NO_CERTIFICATE 496 "nginx: the client sent no certificate; sent as 400",
    TO_HTTPS 497 "nginx: plain HTTP on a TLS port; sent as 400",
    CLIENT_CLOSED_REQUEST 499 "nginx: the client went away; only in logs",
    INTERNAL_SERVER_ERROR 500 "RFC 9110 15.6.1",
    NOT_IMPLEMENTED 501 "RFC 9110 15.6.2",
    BAD_GATEWAY 502 "RFC 9110 15.6.3",
    SERVICE_UNAVAILABLE 503 "RFC 9110 15.6.4",
    GATEWAY_TIMEOUT 504 "RFC 9110 15.6.5",
    HTTP_VERSION_NOT_SUPPORTED 505 "RFC 9110 15.6.6",
    INSUFFICIENT_STORAGE 507 "RFC 4918 11.5",
}

impl Status {
    /// nginx's reason phrase in the status line; `None` where nginx prints the code alone
    /// (`HTTP/1.1 203 ` with a space after it).
    pub const fn reason(self) -> Option<&'static str> {
        Some(match self.0 {
            103 => "Early Hints",
            200 => "OK",
            201 => "Created",
            202 => "Accepted",
            204 => "No Content",
            206 => "Partial Content",
            301 => "Moved Permanently",
            302 => "Moved Temporarily",
            303 => "See Other",
            304 => "Not Modified",
            307 => "Temporary Redirect",
            308 => "Permanent Redirect",
            400 => "Bad Request",
            401 => "Unauthorized",
            402 => "Payment Required",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Not Allowed",
            406 => "Not Acceptable",
            408 => "Request Time-out",
            409 => "Conflict",
            410 => "Gone",
            411 => "Length Required",
            412 => "Precondition Failed",
            413 => "Request Entity Too Large",
            414 => "Request-URI Too Large",
            415 => "Unsupported Media Type",
            416 => "Requested Range Not Satisfiable",
            421 => "Misdirected Request",
            429 => "Too Many Requests",
            500 => "Internal Server Error",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Temporarily Unavailable",
            504 => "Gateway Time-out",
            505 => "HTTP Version Not Supported",
            507 => "Insufficient Storage",
            _ => return None,
        })
    }

    /// The heading of nginx's built-in error page; `None` where nginx has no page.
    pub const fn page_title(self) -> Option<&'static str> {
        Some(match self.0 {
            301 => "301 Moved Permanently",
            302 => "302 Found",
            303 => "303 See Other",
            307 => "307 Temporary Redirect",
            308 => "308 Permanent Redirect",
            400 => "400 Bad Request",
            401 => "401 Authorization Required",
            402 => "402 Payment Required",
            403 => "403 Forbidden",
            404 => "404 Not Found",
            405 => "405 Not Allowed",
            406 => "406 Not Acceptable",
            408 => "408 Request Time-out",
            409 => "409 Conflict",
            410 => "410 Gone",
            411 => "411 Length Required",
            412 => "412 Precondition Failed",
            413 => "413 Request Entity Too Large",
            414 => "414 Request-URI Too Large",
            415 => "415 Unsupported Media Type",
            416 => "416 Requested Range Not Satisfiable",
            421 => "421 Misdirected Request",
            429 => "429 Too Many Requests",
            494 => "400 Request Header Or Cookie Too Large",
            495 => "400 The SSL certificate error",
            496 => "400 No required SSL certificate was sent",
            497 => "400 The plain HTTP request was sent to HTTPS port",
            500 => "500 Internal Server Error",
            501 => "501 Not Implemented",
            502 => "502 Bad Gateway",
            503 => "503 Service Temporarily Unavailable",
            504 => "504 Gateway Time-out",
            505 => "505 HTTP Version Not Supported",
            507 => "507 Insufficient Storage",
            _ => return None,
        })
    }

    /// The code that a client sees: nginx's 494 to 497 become 400.
    pub const fn on_the_wire(self) -> Self {
        match self.0 {
            494..=497 => Self::BAD_REQUEST,
            _ => self,
        }
    }

    /// Whether nginx closes the connection after an error of this status, whatever the client asked: either the
    /// request's end is unknown or its body was not read. (A request that the parser refuses always closes it, 505
    /// included.)
    pub const fn closes_connection(self) -> bool {
        matches!(self.0, 400 | 413 | 414 | 444 | 494..=497 | 500 | 501)
    }

    /// RFC 9110 6.4.1: an answer of this status never has content.
    pub const fn has_no_content(self) -> bool {
        matches!(self.0, 100..=199 | 204 | 304)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_and_pages_carry_their_own_code() {
        for code in 0..=999 {
            let status = Status(code);
            if let Some(title) = status.page_title() {
                let (number, words) = title.split_at(4);
                assert_eq!(number.trim().parse(), Ok(status.on_the_wire().0));
                assert!(!words.is_empty());
            }
            assert_eq!(
                status.on_the_wire().0 == 400,
                matches!(code, 400 | 494..=497)
            );
        }
    }

    #[test]
    fn nginx_has_its_own_phrases() {
        let check = |code: u16, reason: Option<&str>, title: Option<&str>| {
            assert_eq!(
                (Status(code).reason(), Status(code).page_title()),
                (reason, title)
            );
        };
        check(302, Some("Moved Temporarily"), Some("302 Found"));
        check(
            401,
            Some("Unauthorized"),
            Some("401 Authorization Required"),
        );
        check(405, Some("Not Allowed"), Some("405 Not Allowed"));
        check(408, Some("Request Time-out"), Some("408 Request Time-out"));
        check(203, None, None);
        check(431, None, None);
        check(494, None, Some("400 Request Header Or Cookie Too Large"));
    }

    #[test]
    fn statuses_without_content_and_closing_ones_are_known() {
        let check = |code: u16, no_content: bool, closes: bool| {
            let status = Status(code);
            assert_eq!(
                (status.has_no_content(), status.closes_connection()),
                (no_content, closes)
            );
        };
        check(100, true, false);
        check(200, false, false);
        check(204, true, false);
        check(304, true, false);
        check(400, false, true);
        check(404, false, false);
        check(405, false, false);
        check(413, false, true);
        check(494, false, true);
        check(414, false, true);
        check(500, false, true);
        check(501, false, true);
        check(503, false, false);
    }
}
