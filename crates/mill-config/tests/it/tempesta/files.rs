//! `!include`, the texts that the worker process gets, and how the language is told.

use super::{PATH, options};
use mill_config::config::LogLevel;
use mill_config::{Bundle, Memory, Options, Recording, load, tempesta};

/// A site over several files.
fn site() -> Memory {
    Memory::new()
        .with(
            PATH,
            "listen 80;\n!include /etc/tempesta/groups\n!include sites/*\nhttp_chain {\n!include rules.conf\n  -> v;\n}\n",
        )
        .with("/etc/tempesta/groups/b.conf", "srv_group b { server 10.0.0.2; }\n")
        .with("/etc/tempesta/groups/deep/er/a.conf", "srv_group a { server 10.0.0.1; }\n")
        .with("/etc/tempesta/groups/readme.txt", "no configuration")
        .with("/etc/tempesta/sites/v.conf", "vhost v { proxy_pass a backup=b; }")
        .with("/etc/tempesta/rules.conf", "uri == \"*.git\" -> block;")
}

#[test]
fn include_takes_every_conf_below_a_path() {
    let text = tempesta::nginx_text(&site(), &options()).map_err(|failure| failure.error);
    let text = text.unwrap();
    assert!(text.contains("proxy_pass http://a.backup.b;"), "{text}");
    assert!(text.contains("\"~*\\\\.git$\" @block;"), "{text}");
}

#[test]
fn errors_of_included_files_are_shown_in_these() {
    let check = |rules: &str, expected: &str| {
        let source = Memory::new()
            .with(PATH, "http_chain {\n!include rules.conf\n}\n")
            .with("/etc/tempesta/rules.conf", rules);
        let failure = load(&source, &options()).unwrap_err();
        assert_eq!(failure.error.line(), format!("[emerg] {expected}"));
    };
    check(
        "\n-> v;",
        "neither an http_chain nor a vhost \"v\" is found in /etc/tempesta/rules.conf:2",
    );
    check("}", "unexpected \"}\" in /etc/tempesta/rules.conf:1");
    check(
        "!include more",
        "\"!include\" is not allowed in an included file in /etc/tempesta/rules.conf:1",
    );
    let empty = Memory::new().with(PATH, "!include\n");
    let failure = load(&empty, &options()).unwrap_err();
    assert_eq!(failure.error.message, "\"!include\" has no path");
}

#[test]
fn the_worker_s_texts_give_the_same_configuration() {
    let recording = Recording::new(site());
    let first = load(&recording, &options()).unwrap();
    let bundle = Bundle::decode(&recording.into_bundle().encode()).unwrap();
    assert_eq!(bundle.files.len(), 5);
    let second = load(&bundle, &options()).unwrap();
    let shown = |loaded: &mill_config::Loaded| format!("{:?}", loaded.config.http);
    assert_eq!(shown(&first), shown(&second));
}

#[test]
fn a_file_that_begins_so_is_read_so_and_that_is_said() {
    let source = Memory::new().with(
        PATH,
        "listen 80;\nsrv_group default { server 10.0.0.1; }\ncache 0;",
    );
    let mut options = options();
    options.is_tempesta = false;
    let loaded = load(&source, &options)
        .map_err(|failure| failure.error)
        .unwrap();
    let said: Vec<String> = loaded.remarks.iter().map(|remark| remark.line()).collect();
    assert_eq!(
        said,
        [format!(
            "[warn] \"srv_group\" is a directive of Tempesta FW: the configuration is read in its language in {PATH}:2"
        )]
    );
    assert_eq!(loaded.config.http.unwrap().listeners.len(), 1);
}

#[test]
fn an_nginx_conf_is_read_as_before() {
    let source = Memory::new().with(
        "/etc/nginx/nginx.conf",
        "events {} http { server { listen 80; } }",
    );
    let loaded = load(&source, &Options::default()).unwrap();
    assert!(
        loaded
            .remarks
            .iter()
            .all(|remark| remark.level != LogLevel::Notice)
    );
    let piece = Memory::new().with("/etc/nginx/nginx.conf", "server { listen 80; }");
    let failure = load(&piece, &Options::default()).unwrap_err();
    assert_eq!(
        failure.error.message,
        "\"server\" directive is not allowed here"
    );
}

#[test]
fn directives_of_the_command_line_go_before_what_is_implied() {
    let source = Memory::new().with(PATH, "cache 0;");
    let mut options = options();
    options.globals = b"worker_processes 3; worker_rlimit_nofile 99;".to_vec();
    let loaded = load(&source, &options)
        .map_err(|failure| failure.error)
        .unwrap();
    assert_eq!(loaded.config.main.worker_rlimit_nofile, Some(99));
}

#[test]
fn no_piece_of_a_text_makes_a_panic() {
    let text = super::resolved::WHOLE;
    for len in 0..text.len() {
        let source = Memory::new().with(PATH, &text[..len]);
        let _ = load(&source, &options());
        // And without a byte in the middle.
        let without = [&text[..len], &text[len + 1..]].concat();
        let _ = load(&Memory::new().with(PATH, without), &options());
        let _ = tempesta::sign(&text.as_bytes()[len..]);
    }
}
