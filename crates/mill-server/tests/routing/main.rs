//! Requests from their heads to their answers, without connections: locations, rewrites, error pages, variables.
//!
//! Each text file holds cases: `===` begins a configuration (the directives of a `server` block; lines that begin with
//! `@` go into the `http` block), `>` is a request, `<` its answer, `!` an error log line, `&` an access log line. The
//! answers were recorded from nginx 1.22.1.

/// An exchange that records the answer.
#[path = "../recorder/mod.rs"]
mod recorder;

/// One configuration with its requests.
mod case;

/// Which answers may be kept.
mod purity;

/// A worker's shared part over simulated files.
mod site;

use case::{Case, Exchange};
use site::Site;

#[test]
fn locations_are_found_as_nginx_finds_them() {
    check(include_str!("locations.txt"));
}

#[test]
fn rewrites_lead_where_nginx_leads() {
    check(include_str!("rewrites.txt"));
}

#[test]
fn return_answers_as_nginx_does() {
    check(include_str!("returns.txt"));
}

#[test]
fn errors_get_the_pages_that_nginx_gives_them() {
    check(include_str!("error_pages.txt"));
}

#[test]
fn files_are_tried_as_nginx_tries_them() {
    check(include_str!("try_files.txt"));
}

#[test]
fn variables_have_nginxs_values() {
    check(include_str!("variables.txt"));
}

#[test]
fn clients_are_let_in_as_nginx_lets_them_in() {
    check(include_str!("access.txt"));
}

/// Sends every request of every case. All differences are shown together.
fn check(cases: &str) {
    let mut differences = String::new();
    for case in Case::parse(cases) {
        let site = Site::new(&case.directives, &case.http_directives);
        for Exchange { request, answer } in &case.exchanges {
            let found = site.ask(request);
            if found != *answer {
                let title = &case.title;
                differences += &format!("=== {title}\n> {request}\n{answer}but got\n{found}\n");
            }
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}
