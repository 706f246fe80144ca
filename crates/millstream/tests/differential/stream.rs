//! `stream` beside nginx with its stream module: what clients and servers receive, lines of logs, and what is said of bad
//! configurations.

/// Configurations that are refused.
mod refused;

/// Servers behind.
mod behind;

/// Sessions, each at a port of its own.
mod sessions;

/// Lines without what differs from run to run.
mod lines;

use crate::server::Program;
use std::path::Path;

/// The line that nginx needs; Millstream accepts it.
const MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

pub(crate) fn load_module() -> String {
    assert!(
        Path::new(MODULE).exists(),
        "{MODULE} is not installed. Install it: apt-get install libnginx-mod-stream"
    );
    format!("load_module {MODULE};")
}

#[test]
fn configurations_are_refused_in_the_words_of_nginx() {
    let (nginx, millstream) = (
        refused::say(Program::Nginx),
        refused::say(Program::Millstream),
    );
    for (expected, got) in nginx.iter().zip(&millstream) {
        assert_eq!(got, expected);
    }
}

#[test]
fn sessions_are_those_of_nginx() {
    let (nginx, millstream) = (
        sessions::run(Program::Nginx),
        sessions::run(Program::Millstream),
    );
    let differing = nginx
        .iter()
        .zip(&millstream)
        .filter(|(expected, got)| expected != got);
    let shown: Vec<String> = differing
        .map(|(expected, got)| format!("nginx: {expected}\nMillstream: {got}"))
        .collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn nginx_has_the_same_sessions_twice() {
    let (once, again) = (sessions::run(Program::Nginx), sessions::run(Program::Nginx));
    for (once, again) in once.iter().zip(&again) {
        assert_eq!(once, again);
    }
}
