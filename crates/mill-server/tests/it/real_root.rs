//! `$realpath_root` asks the file system: once for a request that evaluates it, and never for one that does not.

use crate::answer::answer;
use crate::server::Server;

/// Sends a request for a path; returns the answer, how often the file system resolved the path, and the `crit` lines.
fn ask(root: &str, directives: &str, path: &str) -> (String, usize, Vec<String>) {
    let directives = format!(
        "location /plain {{ root /{root}; }}
         location /under {{ root /{root}; {directives} }}
         location /over {{ root /{root}; error_page 404 /under; }}"
    );
    let mut server = Server::new(1, &directives);
    server.files().write("/real/plain", "plain");
    server.files().write("/real/under", "under");
    server.files().link("/link", "/real");
    let answer = answer(&server.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")));
    let errors = server.error_log().into_iter();
    let crit = errors.filter(|line| line.contains("[crit]")).collect();
    (answer.text(), server.files().calls().real_path, crit)
}

#[test]
fn only_a_request_that_evaluates_it_pays_for_it() {
    let check = |directives: &str, path: &str, expected: (&str, usize)| {
        let (text, asked, crit) = ask("link", directives, path);
        assert_eq!((text.as_str(), asked), expected, "{directives} {path}");
        assert!(crit.is_empty(), "{crit:?}");
    };
    check("return 200 $realpath_root;", "/plain", ("plain", 0));
    check("return 200 $realpath_root;", "/under", ("/real", 1));
    check(
        "set $a $realpath_root; add_header A $realpath_root; return 200 $realpath_root,$realpath_root;",
        "/under",
        ("/real,/real", 1),
    );
    check(
        "if ($arg_x) { return 200 $realpath_root; }",
        "/under",
        ("under", 0),
    );
    check(
        "if ($arg_x) { return 200 $realpath_root; }",
        "/under?x=1",
        ("/real", 1),
    );
    check(
        "try_files /none$realpath_root /under =404;",
        "/over",
        ("under", 1),
    );
}

#[test]
fn a_document_root_that_is_missing_is_logged_once_by_requests_that_ask_for_its_real_path() {
    let check = |directives: &str, path: &str, lines: usize| {
        let (_, asked, crit) = ask("none", directives, path);
        assert_eq!(
            (asked, crit.len()),
            (lines, lines),
            "{directives} {path}: {crit:?}"
        );
        let words = "realpath() \"/none\" failed (2: No such file or directory)";
        assert!(crit.iter().all(|line| line.contains(words)), "{crit:?}");
    };
    let twice = "add_header A $realpath_root:$realpath_root always; set $b $realpath_root;";
    check(twice, "/plain", 0);
    check(twice, "/under", 1);
    check(twice, "/over", 1);
    check("return 200 [$realpath_root];", "/under", 1);
}
