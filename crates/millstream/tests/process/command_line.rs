//! What is printed, and exit codes.

use crate::site::{Site, free_address};
use mill_sys::account;
use std::process::{Command, Output};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn millstream(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(arguments)
        .output()
        .unwrap()
}

fn site() -> Site {
    let site = Site::new();
    let http = format!("server {{ listen {}; }}", free_address());
    site.configure("worker_processes 4;", &http);
    site
}

#[test]
fn a_test_says_whether_the_configuration_is_good() {
    let site = site();
    let conf = site.path("nginx.conf");
    let conf = conf.display();
    let output = site.nginx(&["-t"]);
    assert!(output.status.success());
    assert_eq!(
        text(&output.stderr),
        format!(
            "nginx: the configuration file {conf} syntax is ok\n\
             nginx: configuration file {conf} test is successful\n"
        )
    );
    assert_eq!(text(&site.nginx(&["-tq"]).stderr), "");
    let output = site.nginx(&["-t", "-g", "bogus on;"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains(": unknown directive \"bogus\" in command line\n"),
        "{stderr}"
    );
    assert!(stderr.ends_with(&format!("nginx: configuration file {conf} test failed\n")));
}

#[test]
fn a_relative_configuration_is_below_the_prefix_if_one_is_given() {
    let site = site();
    let prefix = site.path(".");
    let conf = site.path("nginx.conf");
    for arguments in [["-t", "-p"], ["-tq", "-p"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
            .arg("serve")
            .args(arguments)
            .arg(&prefix)
            .args(["-c", "nginx.conf"])
            .current_dir("/")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["serve", "-tq", "-c", "nginx.conf"])
        .current_dir(conf.parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_dump_holds_every_file_under_its_name() {
    let site = site();
    let conf = std::fs::read_to_string(site.path("nginx.conf")).unwrap();
    let types = "types { text/html html; }\n";
    std::fs::write(site.path("types"), types).unwrap();
    let conf = conf.replace("http {\n", "http {\ninclude types;\n");
    std::fs::write(site.path("nginx.conf"), &conf).unwrap();
    let output = site.nginx(&["-T", "-q"]);
    let (first, second) = (site.path("nginx.conf"), site.path("types"));
    let expected = format!(
        "# configuration file {}:\n{conf}\n# configuration file {}:\n{types}\n",
        first.display(),
        second.display()
    );
    assert_eq!(text(&output.stdout), expected);
    assert!(expected.contains("worker_processes 4;"));
}

#[test]
fn signals_without_a_server_are_errors_with_their_reason() {
    let site = site();
    let last_line = |arguments: &[&str]| {
        let output = site.nginx(arguments);
        assert_eq!(output.status.code(), Some(1));
        let stderr = text(&output.stderr);
        stderr
            .lines()
            .last()
            .and_then(|line| line.split_once(": "))
            .unwrap()
            .1
            .to_owned()
    };
    let pid = site.path("pid");
    let shown = pid.display();
    assert_eq!(
        last_line(&["-s", "quit"]),
        format!("open() \"{shown}\" failed (2: No such file or directory)")
    );
    std::fs::write(&pid, "").unwrap();
    assert_eq!(
        last_line(&["-s", "reload"]),
        format!("invalid PID number \"\" in \"{shown}\"")
    );
    // Beyond the largest number that the kernel gives.
    std::fs::write(&pid, "99999999\n").unwrap();
    assert_eq!(
        last_line(&["-s", "stop"]),
        "kill(99999999, 15) failed (3: No such process)"
    );
    std::fs::remove_file(&pid).unwrap();
}

#[test]
fn versions_and_help_are_on_standard_error_as_in_nginx() {
    let site = site();
    let output = site.nginx(&["-v"]);
    assert!(text(&output.stderr).starts_with("nginx version: nginx/1.22.1 (millstream/"));
    let output = site.nginx(&["-h"]);
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("(default: /etc/nginx/nginx.conf)"));
    for words in [&["-V"][..], &["serve", "-V"]] {
        let output = millstream(words);
        assert!(output.status.success() && output.stdout.is_empty());
        let said = text(&output.stderr);
        let mut lines = said.lines();
        let version = lines.next().unwrap_or_default();
        assert!(
            version.starts_with("millstream version: millstream/"),
            "{said}"
        );
        let configure = lines.next().unwrap_or_default();
        assert!(
            configure.starts_with("configure arguments: --prefix="),
            "{said}"
        );
    }
    let output = millstream(&["--version"]);
    assert!(text(&output.stdout).starts_with("millstream/"));
    let output = site.nginx(&["-V"]);
    let configure = text(&output.stderr);
    assert!(
        configure.contains("configure arguments: --prefix="),
        "{configure}"
    );
    assert!(
        configure.contains("--without-http_ssi_module"),
        "{configure}"
    );
}

#[test]
fn wrong_command_lines_get_an_answer() {
    let check = |arguments: &[&str], expected: &str| {
        let output = millstream(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.starts_with(expected), "{arguments:?}: {stderr}");
    };
    check(
        &["sevre"],
        "millstream: unknown command \"sevre\", did you mean \"serve\"?",
    );
    check(
        &["rnu"],
        "millstream: unknown command \"rnu\", did you mean \"run\"?",
    );
    check(
        &["laod"],
        "millstream: unknown command \"laod\", did you mean \"load\"?",
    );
    check(
        &["load", "respond", "--byte", "1"],
        "millstream: unknown option \"--byte\"",
    );
    check(&["serve", "-x"], "millstream: invalid option: \"x\"");
    check(
        &["serve", "-s", "realod"],
        "millstream: invalid option: \"-s realod\", did you mean \"-s reload\"?",
    );
    check(
        &["serve", "--prot", "80"],
        "millstream: unknown option \"--prot\", did you mean \"--port\"?",
    );
    check(
        &["serve", "8000"],
        "millstream: \"8000\" cannot be served: No such file or directory (os error 2); the port is set by \"--port\"",
    );
    check(
        &["serve", "/etc/hostname"],
        "millstream: \"/etc/hostname\" is no directory; \"-c\" takes a configuration",
    );
    check(
        &["serve", "/tmp", "-t"],
        "millstream: \"-t\" is for a configuration, \"/tmp\" for a directory: one of the two can be served.",
    );
    check(
        &["serve", "/nonexistent"],
        "millstream: \"/nonexistent\" cannot be served",
    );
    check(
        &["serve", "-t", "-c", "/nonexistent"],
        "millstream: [emerg] open() \"/nonexistent\" failed (2: No such file or directory)",
    );
}

#[test]
fn the_bare_command_lists_the_commands() {
    let output = millstream(&[]);
    assert!(output.status.success());
    assert!(
        text(&output.stdout)
            .contains("millstream serve [DIRECTORY] [--port N]   serve a directory")
    );
}

#[test]
fn an_unknown_user_is_shown_in_its_line() {
    if !account::is_super_user() {
        println!("not tested: without root \"user\" is ignored");
        return;
    }
    let check = |names: &str, place: &str, complaint: &str| {
        let site = site();
        let conf = site.path("nginx.conf");
        let text = std::fs::read_to_string(&conf).unwrap();
        let text = text.replace("user www-data;", &format!("user {names};"));
        std::fs::write(&conf, &text).unwrap();
        let line = 1 + text
            .lines()
            .position(|line| line.starts_with("user"))
            .unwrap();
        let output = millstream(&["serve", "-t", "-c", conf.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let (file, margin) = (conf.display(), " ".repeat(line.to_string().len()));
        let expected = format!(
            "millstream: [emerg] {complaint} in {file}:{line}\n\
             \x20 {line} | user {names};\n\
             \x20 {margin} | {place}\n\
             help: this machine has no such "
        );
        assert!(stderr.starts_with(&expected), "{stderr}");
    };
    check("nobodyx", "     ^^^^^^^", "getpwnam(\"nobodyx\") failed");
    check(
        "www-data nogroupx",
        "              ^^^^^^^^",
        "getgrnam(\"nogroupx\") failed",
    );
}

#[test]
fn a_test_lists_all_that_is_not_here_yet_and_fails_as_in_nginx() {
    let site = site();
    let conf = site.path("nginx.conf");
    let http = "server { listen 127.0.0.1:1 quic; location / { userid on; auth_basic off; } }";
    site.configure("", http);
    let output = site.nginx(&["-t"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("[emerg]")
            && stderr.contains("3 directives or parameters are known to nginx"),
        "{stderr}"
    );
    for name in ["listen … quic", "userid", "auth_basic"] {
        assert!(
            stderr
                .lines()
                .any(|line| line.trim_start().starts_with(name)),
            "{stderr}"
        );
    }
    let failed = format!("nginx: configuration file {} test failed\n", conf.display());
    assert!(stderr.ends_with(&failed), "{stderr}");
}

#[test]
fn a_configuration_of_tempesta_is_tested_in_its_own_language() {
    let site = Site::new();
    let conf = site.path("tempesta.conf");
    let text = format!(
        "listen {};\nsrv_group g {{ server 127.0.0.1:1; }}\ncache 0;\n\
         vhost v {{ proxy_pass g; }}\nhttp_chain {{ -> v; }}\n",
        free_address()
    );
    std::fs::write(&conf, &text).unwrap();
    let conf = conf.to_str().unwrap();
    let good = format!(
        "millstream: the configuration file {conf} syntax is ok\n\
         millstream: configuration file {conf} test is successful\n"
    );
    let output = millstream(&["serve", "-t", "--tempesta", conf]);
    assert_eq!(text_of(&output), (true, good));
    let output = millstream(&["serve", "-t", "-c", conf]);
    let said = format!(
        "\"srv_group\" is a directive of Tempesta FW: the configuration is read in its language in {conf}:2"
    );
    let (success, stderr) = text_of(&output);
    assert!(success && stderr.contains(&said), "{stderr}");
    std::fs::write(conf, text.replace("-> v", "-> w")).unwrap();
    let (success, stderr) = text_of(&millstream(&["serve", "-t", "--tempesta", conf]));
    let said = format!(
        "neither an http_chain nor a vhost \"w\" is found in {conf}:5\n  5 | http_chain {{ -> w; }}\n"
    );
    assert!(!success && stderr.contains(&said), "{stderr}");
    assert!(millstream(&["tempesta", "--load"]).status.success());
    let (success, stderr) = text_of(&millstream(&["tempesta", "--run"]));
    assert!(
        !success && stderr.contains("unknown verb \"--run\""),
        "{stderr}"
    );
}

/// Whether it succeeded, and what it wrote to standard error.
fn text_of(output: &Output) -> (bool, String) {
    (output.status.success(), text(&output.stderr))
}
