//! `map`.

use crate::Text;
use crate::config::{Map, MapLookup, MapValue, Pattern, Template, Variable};
use crate::directive::{Apply, Arity, Directive, HTTP_AND_STREAM, Value, many, once};
use crate::directives::main_context;
use crate::lexer::{Statement, Word};
use crate::resolve::draft::HttpDraft;
use crate::resolve::{Applied, Resolver};

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "map",
        HTTP_AND_STREAM,
        Arity::Exactly(2),
        Apply::Block(map),
        "Makes a variable whose value is looked up by another value.",
    ),
    once(
        "map_hash_max_size",
        HTTP_AND_STREAM,
        Arity::Exactly(1),
        "2048",
        Apply::WithoutEffect(Value::Number, "tables size themselves"),
        "Size of the tables of maps.",
    ),
    once(
        "map_hash_bucket_size",
        HTTP_AND_STREAM,
        Arity::Exactly(1),
        "64",
        Apply::WithoutEffect(Value::Number, "tables size themselves"),
        "Bucket of the tables of maps.",
    ),
];

fn map(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (source, target) = (statement.arg(1), statement.arg(2));
    let source = resolver.template(&source.bytes, statement, source)?;
    open_with(resolver, statement, target, source, MapLookup::Tables)?;
    resolver.entries(statement, entry)?;
    if let Some(http) = &mut resolver.http {
        http.map_keys.clear();
        if let Some(map) = http.maps.last_mut() {
            for table in [&mut map.exact, &mut map.suffixes, &mut map.prefixes] {
                table.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
        }
    }
    Ok(())
}

/// Begins a map whose block is read next; `target` is the variable that it defines.
pub(super) fn open_with(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    target: &Word,
    source: Template,
    lookup: MapLookup,
) -> Applied {
    let name = target.bytes.strip_prefix(b"$").unwrap_or_default();
    let Variable::User(variable) = resolver.define(name, statement, target)? else {
        let message = format!(
            "the duplicate \"{}\" variable",
            String::from_utf8_lossy(name)
        );
        return Err(resolver.emerg(statement, target, message));
    };
    let Some(http) = &mut resolver.http else {
        return Ok(());
    };
    let index = http.maps.len();
    http.maps.push(Map {
        source,
        variable,
        exact: Vec::new(),
        suffixes: Vec::new(),
        prefixes: Vec::new(),
        patterns: Vec::new(),
        default: None,
        hostnames: false,
        lookup,
        volatile: false,
    });
    resolver.bind_map(variable, index);
    Ok(())
}

fn entry(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if let [word] = statement.words.as_slice() {
        let flag = match word.bytes.as_slice() {
            b"hostnames" => open(resolver).map(|map| &mut map.hostnames),
            b"volatile" => open(resolver).map(|map| &mut map.volatile),
            _ => None,
        };
        if let Some(flag) = flag {
            *flag = true;
            return Ok(());
        }
    }
    let [key, value] = statement.words.as_slice() else {
        let message = "invalid number of the map parameters";
        return Err(resolver.emerg(statement, statement.name(), message));
    };
    if key.bytes == b"include" {
        return main_context::include_from(resolver, statement, value);
    }
    let value = MapValue(resolver.template(&value.bytes, statement, value)?);
    let text = key.bytes.as_slice();
    if text == b"default" {
        let is_new = open(resolver).is_none_or(|map| map.default.replace(value).is_none());
        return if is_new {
            Ok(())
        } else {
            Err(resolver.emerg(statement, key, "duplicate default map parameter"))
        };
    }
    if let Some(source) = text.strip_prefix(b"~") {
        let (source, caseless) = match source.strip_prefix(b"*") {
            Some(source) => (source, true),
            None => (source, false),
        };
        let pattern: Pattern = resolver.pattern(source, caseless, statement, key)?;
        if let Some(map) = open(resolver) {
            map.patterns.push((pattern, value));
        }
        return Ok(());
    }
    let text = text
        .strip_prefix(b"\\")
        .unwrap_or(text)
        .to_ascii_lowercase();
    let Some(http) = &mut resolver.http else {
        return Ok(());
    };
    let inserted = insert(http, &text, value);
    let message = match inserted {
        Insertion::Done => return Ok(()),
        Insertion::Taken => format!("conflicting parameter \"{}\"", key.display()),
        Insertion::Malformed => format!("invalid hostname or wildcard \"{}\"", key.display()),
    };
    Err(resolver.emerg(statement, key, message))
}

/// The map whose block is open.
pub(super) fn open<'a>(resolver: &'a mut Resolver<'_>) -> Option<&'a mut Map> {
    resolver.http.as_mut()?.maps.last_mut()
}

enum Insertion {
    Done,
    Taken,
    Malformed,
}

/// The tables of a map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    Exact,
    Suffixes,
    Prefixes,
}

fn insert(http: &mut HttpDraft, key: &[u8], value: MapValue) -> Insertion {
    let hostnames = http.maps.last().is_some_and(|map| map.hostnames);
    if !hostnames || !key.iter().any(|byte| matches!(byte, b'*' | b'.')) {
        return add(http, Table::Exact, key, value);
    }
    let well_formed = |name: &[u8]| {
        !name.is_empty() && !name.contains(&b'*') && !name.windows(2).any(|pair| pair == b"..")
    };
    let (table, name) = if let Some(name) = key.strip_prefix(b"*.") {
        (Table::Suffixes, name)
    } else if let Some(name) = key.strip_prefix(b".") {
        (Table::Suffixes, name)
    } else if let Some(name) = key.strip_suffix(b".*") {
        (Table::Prefixes, name)
    } else {
        (Table::Exact, key)
    };
    if !well_formed(name) {
        return Insertion::Malformed;
    }
    if key.first() == Some(&b'.') {
        // The name itself and all below it.
        match add(http, Table::Exact, name, value.clone()) {
            Insertion::Done => {}
            failed => return failed,
        }
    }
    add(http, table, name, value)
}

/// Tables are sorted when the block is closed; until then a set of keys finds conflicts.
fn add(http: &mut HttpDraft, table: Table, key: &[u8], value: MapValue) -> Insertion {
    let key = Text::from(key);
    if !http.map_keys.insert((table, key.clone())) {
        return Insertion::Taken;
    }
    if let Some(map) = http.maps.last_mut() {
        let entries = match table {
            Table::Exact => &mut map.exact,
            Table::Suffixes => &mut map.suffixes,
            Table::Prefixes => &mut map.prefixes,
        };
        entries.push((key, value));
    }
    Insertion::Done
}
