//! A missing `;` is reported at the place where it is missing.

use mill_config::config::LogLevel;
use mill_config::{Diagnostic, Memory, Options, load};

const PATH: &str = "/etc/nginx/nginx.conf";

/// The last message about a configuration.
fn said(text: &str) -> Diagnostic {
    let source = Memory::new().with(PATH, text);
    match load(&source, &Options::default()) {
        Ok(loaded) => loaded.remarks.last().cloned().expect("a remark"),
        Err(failure) => failure.error,
    }
}

#[test]
fn the_caret_stands_where_it_is_missing() {
    let text =
        "events {}\nhttp {\n    server {\n        root /site\n        index a.html;\n    }\n}\n";
    assert_eq!(
        said(text).render("nginx"),
        "nginx: [emerg] directive \"root\" is not terminated by \";\" in /etc/nginx/nginx.conf:4\n\
         \x20 4 |         root /site\n\
         \x20   |                   ^ \";\" is missing here\n"
    );
}

#[test]
fn whatever_ends_the_statement_instead() {
    let check = |directives: &str, expected: &str| {
        let text = format!("events {{}}\nhttp {{\n{directives}");
        let error = said(&text);
        assert_eq!(error.level, LogLevel::Emerg, "{text}");
        assert_eq!(
            error.line().replace(PATH, "FILE"),
            format!("[emerg] {expected}"),
            "{text}"
        );
    };
    let root = "directive \"root\" is not terminated by \";\" in FILE:3";
    // The next directive, by its `;` or its block.
    check("root /a\nindex b;\n}", root);
    check("root /a\n\n  # and now\n\tserver {\n}\n}", root);
    check("root /a # the site\nserver { }\n}", root);
    check(
        "sendfile on\ntcp_nopush on;\n}",
        "directive \"sendfile\" is not terminated by \";\" in FILE:3",
    );
    check(
        "root /a\nindex\nb\n}",
        "unexpected \"}\": directive \"root\" is not terminated by \";\" in FILE:3",
    );
    check(
        "server { location / { proxy_pass http://a\n} } }",
        "unexpected \"}\": directive \"proxy_pass\" is not terminated by \";\" in FILE:3",
    );
    check(
        "server {\nproxy_redirect off\nlocation / { } } }",
        "directive \"proxy_redirect\" is not terminated by \";\" in FILE:4",
    );
    // The end of the block, of the file.
    check(
        "root /a\n}",
        "unexpected \"}\": directive \"root\" is not terminated by \";\" in FILE:3",
    );
    check(
        "root /a",
        "unexpected end of file: directive \"root\" is not terminated by \";\" in FILE:3",
    );
    check(
        "types {\n text/html html\n}\n}",
        "unexpected \"}\": entry \"text/html\" is not terminated by \";\" in FILE:4",
    );
    // Not missing: the number of arguments is wrong.
    check(
        "root /a index b;\n}",
        "invalid number of arguments in \"root\" directive in FILE:3",
    );
    check(
        "root /a\n/b;\n}",
        "invalid number of arguments in \"root\" directive in FILE:4",
    );
    check(
        "root /a\n\"index\" b;\n}",
        "invalid number of arguments in \"root\" directive in FILE:4",
    );
    check(
        "root /a\nlisten 80;\n}",
        "invalid number of arguments in \"root\" directive in FILE:4",
    );
}

#[test]
fn where_any_word_is_an_argument_there_is_a_warning() {
    let check = |directives: &str, expected: Option<&str>| {
        let source = Memory::new().with(
            PATH,
            format!("events {{}} http {{ server {{ {directives} }} }}"),
        );
        let remarks = load(&source, &Options::default()).unwrap().remarks;
        let lines: Vec<String> = remarks.iter().map(Diagnostic::line).collect();
        let expected: Vec<String> = expected.map(str::to_owned).into_iter().collect();
        assert_eq!(lines, expected, "{directives}");
    };
    check(
        "server_name a\nroot site;",
        Some(
            "[warn] \"root\" at the beginning of a line is an argument of \"server_name\" in /etc/nginx/nginx.conf:2",
        ),
    );
    check("server_name a\n\"root\" site;", None);
    check("server_name a\nb;\nroot site;", None);
    check("gzip_types text/css\n  text/plain;", None);
}
