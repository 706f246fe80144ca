//! Directives that nginx has and Millstream does not have yet: authentication, mail, HTTP/3, and
//! modules that rewrite content. Using one is an error that says so.
//!
//! They are listed in `known.txt`: a module of nginx a line, then its directives on indented lines, each line with the
//! contexts of its directives: m main, e events, h http, s server, I if in server, l location, i if in location,
//! x limit_except, u upstream, M mail, S stream.

use std::sync::OnceLock;

use crate::directive::{Apply, Arity, Contexts, Directive};

/// All of them, by module.
pub(crate) fn directives() -> &'static [Directive] {
    static DIRECTIVES: OnceLock<Vec<Directive>> = OnceLock::new();
    DIRECTIVES.get_or_init(|| {
        let mut directives = Vec::new();
        let mut module = "";
        for line in include_str!("known.txt").lines() {
            match line.trim_start().split_once(": ") {
                Some((letters, names)) => {
                    let contexts = parse_contexts(letters);
                    let known = |name| known(name, contexts, module);
                    directives.extend(names.split(' ').map(known));
                }
                None => module = line,
            }
        }
        directives
    })
}

/// A directive that is refused.
fn known(name: &'static str, contexts: Contexts, module: &'static str) -> Directive {
    Directive {
        name,
        contexts,
        arity: Arity::AtLeast(0),
        default: None,
        doc: "",
        repeats: true,
        apply: Apply::NotYet(module),
        unread: None,
    }
}

fn parse_contexts(letters: &str) -> Contexts {
    let one = |letter| match letter {
        b'm' => Contexts::MAIN,
        b'e' => Contexts::EVENTS,
        b'h' => Contexts::HTTP,
        b's' => Contexts::SERVER,
        b'I' => Contexts::IF_IN_SERVER,
        b'l' => Contexts::LOCATION,
        b'i' => Contexts::IF_IN_LOCATION,
        b'x' => Contexts::LIMIT_EXCEPT,
        b'u' => Contexts::UPSTREAM,
        b'M' => Contexts::MAIL,
        _ => Contexts::STREAM.and(Contexts::STREAM_SERVER),
    };
    letters.bytes().map(one).fold(Contexts(0), Contexts::and)
}
