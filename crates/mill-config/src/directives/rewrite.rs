//! `if`, `set`, `rewrite`, `return`, `break`.

use crate::config::settings::group;
use crate::config::{
    Condition, FileTest, Instruction, LocationName, RewriteFlag, Template, Variable,
};
use crate::directive::{
    Apply, Arity, Contexts, Directive, HTTP, REWRITING, SERVER_LOCATION, many, once,
};
use crate::lexer::{Statement, Word};
use crate::resolve::draft::{LocationDraft, Step};
use crate::resolve::{Applied, Resolver};
use crate::value;

group! {
    /// Rewrite messages in the error log.
    RewriteSettings {
        /// `rewrite_log`: notices about rewrites in the error log.
        log: bool = false,
        /// `uninitialized_variable_warn`.
        uninitialized_variable_warn: bool = true,
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "if",
        SERVER_LOCATION,
        Arity::AtLeast(1),
        Apply::Block(if_block),
        "Instructions and settings that hold on a condition.",
    ),
    many(
        "set",
        REWRITING,
        Arity::Exactly(2),
        Apply::With(set),
        "Gives a variable a value.",
    ),
    many(
        "rewrite",
        REWRITING,
        Arity::Between(2, 3),
        Apply::With(rewrite),
        "Changes the path by a regular expression, or redirects.",
    ),
    many(
        "return",
        REWRITING,
        Arity::Between(1, 2),
        Apply::With(return_answer),
        "Answers at once: a status, with a text or the target of a redirect.",
    ),
    many(
        "break",
        REWRITING,
        Arity::Exactly(0),
        Apply::With(|r, _| {
            r.level.steps.push(Step::Ready(Instruction::Break));
            Ok(())
        }),
        "Ends the rewriting in this place.",
    ),
    once(
        "rewrite_log",
        HTTP.and(REWRITING),
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.rewrite.log),
        "Notices about rewriting in the error log.",
    ),
    once(
        "uninitialized_variable_warn",
        HTTP.and(REWRITING),
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.rewrite.uninitialized_variable_warn),
        "Warnings in the error log about variables without value.",
    ),
];

fn push(resolver: &mut Resolver<'_>, instruction: Instruction) {
    resolver.level.steps.push(Step::Ready(instruction));
}

fn set(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (target, text) = (statement.arg(1), statement.arg(2));
    let Some(name) = target.bytes.strip_prefix(b"$") else {
        let message = format!("invalid variable name \"{}\"", target.display());
        let mut error = resolver.emerg(statement, target, message);
        error.help = Some(format!("write \"${}\"", target.display()));
        return Err(error);
    };
    let variable = resolver.define(name, statement, target)?;
    let value = resolver.template(&text.bytes, statement, text)?;
    push(resolver, Instruction::Set { variable, value });
    Ok(())
}

fn is_redirect(text: &[u8]) -> bool {
    text.starts_with(b"http://") || text.starts_with(b"https://") || text.starts_with(b"$scheme")
}

fn rewrite(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (source, word) = (statement.arg(1), statement.arg(2));
    if word.bytes.is_empty() {
        return Err(resolver.emerg(statement, word, "empty replacement"));
    }
    let pattern = resolver.shared_pattern(&source.bytes, false, statement, source)?;
    let (text, keep_args) = match word.bytes.strip_suffix(b"?") {
        Some(text) => (text, false),
        None => (word.bytes.as_slice(), true),
    };
    let mut flag = if is_redirect(&word.bytes) {
        RewriteFlag::Redirect
    } else {
        RewriteFlag::Continue
    };
    if let Some(written) = statement.args().get(2) {
        flag = match written.bytes.as_slice() {
            // A target on another server stays a redirect, with any flag.
            b"last" | b"break" if flag == RewriteFlag::Redirect => RewriteFlag::Redirect,
            b"last" => RewriteFlag::Last,
            b"break" => RewriteFlag::Break,
            b"redirect" => RewriteFlag::Redirect,
            b"permanent" => RewriteFlag::Permanent,
            _ => {
                let message = format!("invalid parameter \"{}\"", written.display());
                let mut error = resolver.emerg(statement, written, message);
                error.help = Some(String::from("one of: last, break, redirect, permanent"));
                return Err(error);
            }
        };
    }
    let (path, args) = match text.iter().position(|&byte| byte == b'?') {
        Some(at) => {
            let (path, args) = text.split_at(at);
            (path, args.get(1..))
        }
        None => (text, None),
    };
    let replacement = resolver.template(path, statement, word)?;
    let args = args
        .map(|args| resolver.template(args, statement, word))
        .transpose()?;
    push(
        resolver,
        Instruction::Rewrite {
            pattern,
            replacement,
            args,
            keep_args,
            flag,
        },
    );
    Ok(())
}

/// A status has three digits at most.
const STATUS_MAX: u64 = 999;

fn return_answer(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let has_text = statement.args().len() == 2;
    let status = value::number(&word.bytes).filter(|&status| status <= STATUS_MAX);
    let (status, text) = match status.and_then(|status| u16::try_from(status).ok()) {
        Some(status) => (status, has_text.then(|| statement.arg(2))),
        None if !has_text && is_redirect(&word.bytes) => (302, Some(word)),
        None => {
            let message = format!("invalid return code \"{}\"", word.display());
            return Err(resolver.emerg(statement, word, message));
        }
    };
    let text = text
        .map(|word| resolver.template(&word.bytes, statement, word))
        .transpose()?;
    push(resolver, Instruction::Return { status, text });
    Ok(())
}

fn if_block(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let condition = condition(resolver, statement)?;
    let in_server = resolver.context == Contexts::SERVER;
    let context = if in_server {
        Contexts::IF_IN_SERVER
    } else {
        Contexts::IF_IN_LOCATION
    };
    // A path such as `alias` depends on the name of the enclosing location.
    let inner = LocationDraft {
        name: Some(LocationName::Condition),
        ..Default::default()
    };
    let outer = std::mem::replace(&mut resolver.level, inner);
    let parsed = resolver.block(statement, context);
    let level = Box::new(std::mem::replace(&mut resolver.level, outer));
    resolver.level.steps.push(Step::If {
        condition,
        level,
        in_server,
    });
    parsed
}

/// `(` WORD [OPERATOR WORD] `)`, the parentheses as separate words or joined to others.
fn condition(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<Condition> {
    let invalid = |resolver: &Resolver<'_>, word: &Word| {
        let message = format!("invalid condition \"{}\"", word.display());
        resolver.emerg(statement, word, message)
    };
    let mut words: Vec<Word> = statement.args().to_vec();
    let first = statement.arg(1);
    match words.first_mut() {
        Some(word) if word.bytes == b"(" => {
            words.remove(0);
        }
        Some(word) if word.bytes.first() == Some(&b'(') => {
            word.bytes.remove(0);
            word.span.start += 1;
        }
        _ => return Err(invalid(resolver, first)),
    }
    let last = statement.args().last().unwrap_or(first);
    match words.last_mut() {
        Some(word) if word.bytes == b")" => {
            words.pop();
        }
        Some(word) if word.bytes.last() == Some(&b')') => {
            word.bytes.pop();
            word.span.end = word.span.end.saturating_sub(1);
        }
        _ => return Err(invalid(resolver, words.last().unwrap_or(last))),
    }
    match words.as_slice() {
        [variable] if is_variable(variable) => {
            Ok(Condition::Truthy(named(resolver, statement, variable)))
        }
        [variable, operator, right] if is_variable(variable) => {
            comparison(resolver, statement, variable, operator, right)
        }
        [test, path] if test.bytes.starts_with(b"-") || test.bytes.starts_with(b"!-") => {
            let path_template = resolver.template(&path.bytes, statement, path)?;
            file_test(&test.bytes, path_template).ok_or_else(|| invalid(resolver, test))
        }
        [word, ..] => Err(invalid(resolver, word)),
        [] => Err(invalid(resolver, last)),
    }
}

fn is_variable(word: &Word) -> bool {
    word.bytes.len() > 1 && word.bytes.first() == Some(&b'$')
}

fn named(resolver: &mut Resolver<'_>, statement: &Statement, word: &Word) -> Variable {
    let name = word.bytes.get(1..).unwrap_or_default();
    resolver.variable(name, statement, word)
}

fn comparison(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    variable: &Word,
    operator: &Word,
    right: &Word,
) -> Applied<Condition> {
    let variable = named(resolver, statement, variable);
    match operator.bytes.as_slice() {
        op @ (b"=" | b"!=") => Ok(Condition::Equal {
            variable,
            value: resolver.template(&right.bytes, statement, right)?,
            negated: op.first() == Some(&b'!'),
        }),
        op @ (b"~" | b"~*" | b"!~" | b"!~*") => Ok(Condition::Matches {
            variable,
            pattern: resolver.shared_pattern(
                &right.bytes,
                op.last() == Some(&b'*'),
                statement,
                right,
            )?,
            negated: op.first() == Some(&b'!'),
        }),
        _ => {
            let message = format!("unexpected \"{}\" in condition", operator.display());
            let mut error = resolver.emerg(statement, operator, message);
            error.help = Some(String::from("one of: =, !=, ~, ~*, !~, !~*"));
            Err(error)
        }
    }
}

fn file_test(operator: &[u8], path: Template) -> Option<Condition> {
    let (negated, operator) = match operator.strip_prefix(b"!") {
        Some(operator) => (true, operator),
        None => (false, operator),
    };
    let test = match operator {
        b"-f" => FileTest::File,
        b"-d" => FileTest::Directory,
        b"-e" => FileTest::Exists,
        b"-x" => FileTest::Executable,
        _ => return None,
    };
    Some(Condition::File {
        test,
        path,
        negated,
    })
}
