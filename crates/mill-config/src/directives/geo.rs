//! `geo`: a variable whose value is looked up by the network of an address.

use std::net::Ipv4Addr;

use crate::Text;
use crate::config::{GeoTable, MapLookup, MapValue, Network, Part, Template, Variable};
use crate::directive::{Apply, Arity, Directive, HTTP_AND_STREAM, many};
use crate::directives::access::network;
use crate::directives::main_context;
use crate::directives::map::{open, open_with};
use crate::lexer::{Statement, Word};
use crate::resolve::unsupported::Feature;
use crate::resolve::{Applied, Resolver};

pub(crate) const DIRECTIVES: &[Directive] = &[many(
    "geo",
    HTTP_AND_STREAM,
    Arity::Between(1, 2),
    Apply::Block(geo),
    "Makes a variable whose value is looked up by the client's address, or another one: networks, ranges, default, delete, include.",
)];

fn geo(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (source, target) = match statement.args() {
        [source, target] => {
            let name = source.bytes.strip_prefix(b"$");
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                return Err(invalid_name(resolver, statement, source));
            };
            let variable = resolver.variable(name, statement, source);
            (Part::Variable(variable), target)
        }
        _ => (Part::Variable(Variable::RemoteAddr), statement.arg(1)),
    };
    if !target.bytes.starts_with(b"$") {
        return Err(invalid_name(resolver, statement, target));
    }
    let source = Template::from_parts([source]);
    let lookup = MapLookup::Networks {
        table: GeoTable::default(),
        is_of_ranges: false,
    };
    open_with(resolver, statement, target, source, lookup)?;
    resolver.entries(statement, entry)
}

fn invalid_name(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
) -> Box<crate::Diagnostic> {
    let message = format!("invalid variable name \"{}\"", word.display());
    resolver.emerg(statement, word, message)
}

fn entry(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if let [word] = statement.words.as_slice() {
        match word.bytes.as_slice() {
            b"ranges" => {
                let is_first = table(resolver).is_none_or(|(table, _)| table.is_empty());
                if !is_first {
                    let message =
                        "the \"ranges\" directive must be the first directive inside \"geo\" block";
                    return Err(resolver.emerg(statement, word, message));
                }
                if let Some((_, is_of_ranges)) = table(resolver) {
                    *is_of_ranges = true;
                }
                return Ok(());
            }
            b"proxy_recursive" => return not_yet(resolver, statement, "proxy_recursive"),
            _ => {}
        }
    }
    let [key, value] = statement.words.as_slice() else {
        let message = "invalid number of the geo parameters";
        return Err(resolver.emerg(statement, statement.name(), message));
    };
    match key.bytes.as_slice() {
        b"include" => return main_context::include_from(resolver, statement, value),
        b"proxy" => return not_yet(resolver, statement, "proxy"),
        b"default" => {
            let value = MapValue(Template::literal(Text::from(value.bytes.as_slice())));
            if let Some(map) = open(resolver) {
                map.default = Some(value);
            }
            return Ok(());
        }
        _ => {}
    }
    let (place, value) = match key.bytes.as_slice() {
        b"delete" => (value, None),
        _ => {
            let text = Template::literal(Text::from(value.bytes.as_slice()));
            (key, Some(MapValue(text)))
        }
    };
    match table(resolver).map(|(_, is_of_ranges)| *is_of_ranges) {
        Some(true) => add_range(resolver, statement, place, value),
        _ => add_network(resolver, statement, place, value),
    }
}

/// Trusted proxies before the client: `set_real_ip_from` says the same for all.
fn not_yet(resolver: &mut Resolver<'_>, statement: &Statement, name: &str) -> Applied {
    let feature = Feature {
        label: format!("geo … {name}"),
        subject: format!("\"{name}\" in \"geo\" is"),
        note: String::from("ngx_http_geo_module"),
        help: String::from(
            "set_real_ip_from makes the client's address that of the header for all directives",
        ),
    };
    resolver.not_yet(feature, statement, statement.name());
    Ok(())
}

fn table<'a>(resolver: &'a mut Resolver<'_>) -> Option<(&'a mut GeoTable, &'a mut bool)> {
    match &mut open(resolver)?.lookup {
        MapLookup::Networks {
            table,
            is_of_ranges,
        } => Some((table, is_of_ranges)),
        _ => None,
    }
}

fn add_network(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    value: Option<MapValue>,
) -> Applied {
    let found = match word.bytes.as_slice() {
        b"all" | b"unix:" => None,
        text => network(text),
    };
    let Some((Network::Cidr(address, bits), exact)) = found else {
        let message = format!("invalid network \"{}\"", word.display());
        return Err(resolver.emerg(statement, word, message));
    };
    if !exact {
        let message = format!("low address bits of {} are meaningless", word.display());
        resolver.warn(statement, word, message);
    }
    let Some((table, _)) = table(resolver) else {
        return Ok(());
    };
    let Some(value) = value else {
        if !table.remove(address, bits) {
            let message = format!("no network \"{}\" to delete", word.display());
            resolver.warn(statement, word, message);
        }
        return Ok(());
    };
    let new = text_of(&value);
    if let Some(old) = table.insert(address, bits, value) {
        let old = text_of(&old);
        let message = format!(
            "duplicate network \"{}\", value: \"{new}\", old value: \"{old}\"",
            word.display()
        );
        resolver.warn(statement, word, message);
    }
    Ok(())
}

fn text_of(value: &MapValue) -> String {
    String::from_utf8_lossy(value.0.as_literal().unwrap_or_default()).into_owned()
}

fn add_range(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    value: Option<MapValue>,
) -> Applied {
    let Some(ends) = range(&word.bytes) else {
        let message = format!("invalid range \"{}\"", word.display());
        return Err(resolver.emerg(statement, word, message));
    };
    let Some((table, _)) = table(resolver) else {
        return Ok(());
    };
    let shown = word.display();
    let Some(value) = value else {
        if !table.remove_range(ends) {
            let message = format!("no address range \"{shown}\" to delete");
            resolver.warn(statement, word, message);
        }
        return Ok(());
    };
    let new = text_of(&value);
    match table.insert_range(ends, value) {
        Ok(None) => Ok(()),
        Ok(Some(old)) => {
            let old = text_of(&old);
            let message =
                format!("duplicate range \"{shown}\", value: \"{new}\", old value: \"{old}\"");
            resolver.warn(statement, word, message);
            Ok(())
        }
        Err((start, end)) => {
            let message = format!("range \"{shown}\" overlaps \"{start}-{end}\"");
            Err(resolver.emerg(statement, word, message))
        }
    }
}

/// Two addresses of IPv4 with a dash between them, the smaller one first.
fn range(text: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let (start, end) = std::str::from_utf8(text).ok()?.split_once('-')?;
    let (start, end) = (start.parse().ok()?, end.parse().ok()?);
    (start <= end).then_some((start, end))
}
