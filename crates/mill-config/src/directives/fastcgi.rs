//! `fastcgi_pass` and what FastCGI alone has.

use std::sync::Arc;

use crate::Text;
use crate::config::settings::group;
use crate::config::{PassProtocol, Pattern};
use crate::directive::{ANY_LEVEL, Apply, Arity, Contexts, Directive, LOCATION, Value, many, once};
use crate::directives::pass::{PassParam, target, value};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

group! {
    /// What only `fastcgi_pass` has.
    FastcgiSettings {
        /// `fastcgi_param`.
        params: Vec<PassParam> = Vec::new(),
        /// `fastcgi_index`: appended to `$fastcgi_script_name` if that ends in a slash; may be empty.
        index: Text = Text::default(),
        /// `fastcgi_split_path_info`: its two captures are `$fastcgi_script_name` and `$fastcgi_path_info`.
        split_path_info: Option<Arc<Pattern>> = None,
        /// `fastcgi_catch_stderr`: texts that make an answer invalid if FCGI_STDERR has one of them.
        catch_stderr: Vec<Text> = Vec::new(),
        /// `fastcgi_keep_conn`: FCGI_KEEP_CONN.
        keep_conn: bool = false,
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "fastcgi_pass",
        LOCATION.and(Contexts::IF_IN_LOCATION),
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| target::gateway_pass(r, s, PassProtocol::Fastcgi)),
        "Passes requests to a FastCGI server or a group of them: host:port, or unix:path.",
    ),
    many(
        "fastcgi_param",
        ANY_LEVEL,
        Arity::Between(2, 3),
        Apply::With(|r, s| {
            let param = value::param(r, s)?;
            let params = &mut r.level.settings.fastcgi_params.params;
            params.get_or_insert_default().push(param);
            Ok(())
        }),
        "A parameter of requests, with if_not_empty only if it has a value.",
    ),
    once(
        "fastcgi_index",
        ANY_LEVEL,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| {
            let index = Text::from(s.arg(1).bytes.as_slice());
            r.level.settings.fastcgi_params.index = Some(index);
            Ok(())
        }),
        "What follows a path that ends in a slash in $fastcgi_script_name.",
    ),
    many(
        "fastcgi_split_path_info",
        ANY_LEVEL,
        Arity::Exactly(1),
        Apply::With(split_path_info),
        "An expression with two captures, $fastcgi_script_name and $fastcgi_path_info.",
    ),
    many(
        "fastcgi_catch_stderr",
        ANY_LEVEL,
        Arity::Exactly(1),
        Apply::With(|r, s| {
            value::add_text(&mut r.level.settings.fastcgi_params.catch_stderr, s);
            Ok(())
        }),
        "An answer whose standard error has this text is invalid.",
    ),
    once(
        "fastcgi_keep_conn",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.fastcgi_params.keep_conn),
        "Ask servers to keep the connection after an answer.",
    ),
    once(
        "fastcgi_send_lowat",
        ANY_LEVEL,
        Arity::Exactly(1),
        "0",
        Apply::WithoutEffect(Value::Size, "Linux has no SO_SNDLOWAT"),
        "SO_SNDLOWAT of connections to servers.",
    ),
];

fn split_path_info(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    // As in nginx, names of captures define no variables here.
    let pattern = Pattern::parse(&word.bytes, false).map_err(|reason| {
        let shown = word.display();
        let message = format!("pcre2_compile() failed: {reason} in \"{shown}\"");
        resolver.emerg(statement, word, message)
    })?;
    if pattern.capture_count() != 2 {
        let message = format!("pattern \"{}\" must have 2 captures", word.display());
        return Err(resolver.emerg(statement, word, message));
    }
    resolver.level.settings.fastcgi_params.split_path_info = Some(Some(Arc::new(pattern)));
    Ok(())
}
