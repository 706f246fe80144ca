//! `msie_padding` and `msie_refresh`.

use crate::server::Server;

const MSIE: &str = "User-Agent: Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1)";
const CHROME: &str = "User-Agent: Mozilla/5.0 (X11) AppleWebKit/537.36 Chrome/120.0 Safari/537.36";
const FIREFOX: &str = "User-Agent: Mozilla/5.0 (X11) Gecko/20100101 Firefox/115.0";

#[test]
fn error_pages_are_padded_for_browsers_that_do_not_show_short_ones() {
    let server = Server::new(
        "location /off { msie_padding off; return 404; }
         location /503 { return 503; }
         location /301 { return 301 /a; }
         location /text { return 404 text; }
         location /file/ { error_page 404 /a.txt; }",
    );
    let check = |asked: &str, fields: &str, expected: usize| {
        let asked = format!("GET {asked} | {fields}");
        let content = server.content_of(&asked);
        let lines = content.matches("<!-- a padding to disable").count();
        assert_eq!(lines, expected, "{asked}: {content}");
    };
    check("/missing", MSIE, 6);
    check("/missing", CHROME, 6);
    check("/missing", FIREFOX, 0);
    check("/missing", "X: y", 0);
    check("/missing", &format!("User-Agent: x | {MSIE}"), 0);
    check("/503", MSIE, 6);
    check("/301", MSIE, 0);
    check("/text", MSIE, 0);
    check("/off", MSIE, 0);
    check("/file/x", MSIE, 0);
    check("/%00", MSIE, 0);
}

#[test]
fn redirects_become_pages_for_internet_explorer() {
    let server = Server::new(
        "msie_refresh on; charset utf-8;
         location /301 { return 301 \"/x?a='b\"; }
         location /302 { return 302 http://h/; }
         location /307 { return 307 http://h/; }
         location /rewritten { rewrite ^ /x permanent; }
         location /error/ { error_page 404 =307 http://h/e; }
         location /off { msie_refresh off; return 301 http://h/; }
         location /page { error_page 301 /text; return 301 http://h/; }
         location /text { return 200 text; }",
    );
    let page = |target: &str| {
        format!(
            "200 | text/html; charset=utf-8 | <html><head><meta http-equiv=\"Refresh\" \
             content=\"0; URL={target}\"></head><body></body></html>\r\n"
        )
    };
    let check = |asked: &str, expected: &str| {
        assert_eq!(server.ask(&format!("GET {asked} | {MSIE}")), expected);
    };
    check("/301", &page("/x?a=%27b"));
    check("/302", &page("http://h/"));
    check("/dir", &page("/dir/"));
    check("/rewritten", &page("/x"));
    check("/error/x", &page("http://h/e"));
    check("/307", "307 | text/html; charset=utf-8 | http://h/");
    check("/off", "301 | text/html | http://h/");
    check("/page", "301 | text/plain | http://h/");
    for fields in [CHROME, FIREFOX] {
        let asked = format!("GET /302 | {fields}");
        assert_eq!(server.ask(&asked), "302 | text/html | http://h/");
    }
}
