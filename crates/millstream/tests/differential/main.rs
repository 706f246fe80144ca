//! Differential test: the same requests to nginx and to Millstream under the same configuration, answers compared.
//!
//! The cases are the files in `cases/`, one a subject; `cases.rs` describes their format. A case marked `differs ID:`
//! has to differ, and COMPLIANCE.md has to explain the ID. To test the harness itself, every case also runs against
//! nginx twice, where all answers must be equal.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it has to be"
)]

/// The text files with configurations and requests.
mod cases;

/// The files that are served.
mod content;

/// A server process with a directory of its own.
mod server;

/// An upstream server.
mod origin;

/// Bytes to a server and back.
mod exchange;

/// An answer in its parts, without those that may differ.
mod answer;

/// One subject from start to verdict.
mod trial;

/// Random requests.
mod seeded;

/// Configurations that are refused.
mod refused;

/// `stream`, with tables of its own.
mod stream;

/// Tables of messages.
#[path = "../../../mill-server/tests/it/proxy/payload.rs"]
mod payload;

/// Readers that forgive what is forbidden.
#[path = "../../../mill-server/tests/it/proxy/lenient.rs"]
mod lenient;

/// Messages that two readers could divide in different places.
mod smuggling;

use cases::Subject;
use server::Program;

macro_rules! subjects {
    ($($name:ident)*) => {
        const SUBJECTS: &[(&str, &str)] = &[
            $((stringify!($name), include_str!(concat!("cases/", stringify!($name), ".txt"))),)*
        ];

        mod millstream_answers_as_nginx {
            $(#[test]
            fn $name() {
                super::check(stringify!($name), super::Program::Millstream);
            })*
        }

        mod nginx_answers_as_itself {
            $(#[test]
            fn $name() {
                super::check(stringify!($name), super::Program::Nginx);
            })*
        }
    };
}

subjects! {
    methods
    targets
    ranges
    conditionals
    redirects
    encodings
    malformed
    connections
    content_in
    routing
    rewriting
    error_pages
    autoindex
    headers
    access
    limits
    rates
    delays
    logs
    hosts
    virtual_named
    virtual_default
    authorities
    refused_lines
    variables
    repeated
    charset
    proxy_requests
    caching
    slices
    proxy_answers
    proxy_faults
    proxy_groups
    proxy_protocol
    real_ip
    real_ip_proxy_protocol
    shares_and_networks
    app_django
    app_rails
    app_node
    app_grafana
    app_jenkins
    app_gitlab
    app_home_assistant
    app_minio
    app_keycloak
}

fn check(name: &str, other: Program) {
    let (_, text) = SUBJECTS.iter().find(|(known, _)| *known == name).unwrap();
    let subject = Subject::parse(name, text);
    let verdict = trial::run(&subject, other);
    assert!(verdict.is_empty(), "\n{}", verdict.join("\n"));
}

#[test]
fn there_are_at_least_three_hundred_cases() {
    let subjects = SUBJECTS
        .iter()
        .map(|(name, text)| Subject::parse(name, text));
    let count: usize = subjects.map(|subject| subject.cases.len()).sum();
    assert!(count >= 300, "only {count}");
}

#[test]
fn every_known_difference_is_explained_in_compliance_md() {
    let explained = include_str!("../../../../COMPLIANCE.md");
    for (name, text) in SUBJECTS {
        for case in Subject::parse(name, text).cases {
            if let Some(id) = case.differs {
                let mention = format!("`{id}`");
                assert!(
                    explained.contains(&mention),
                    "{name}: COMPLIANCE.md has no {mention}"
                );
            }
        }
    }
}
