//! `listen`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::Text;
use crate::config::{KeepaliveProbes, ListenAddress, ListenOptions, SocketKeepalive};
use crate::directive::{Apply, Arity, Directive, SERVER, many};
use crate::lexer::{Statement, Word};
use crate::resolve::draft::AddressDraft;
use crate::resolve::unsupported::Feature;
use crate::resolve::{Applied, Resolver, spot};
use crate::value;

pub(crate) const DIRECTIVES: &[Directive] = &[many(
    "listen",
    SERVER,
    Arity::AtLeast(1),
    Apply::With(listen),
    "Address, port or unix:path that the server listens on, and options of the socket.",
)];

/// The options of one `listen`.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) options: ListenOptions,
    /// One of them is a socket option.
    pub(crate) set: bool,
    pub(crate) default: bool,
}

fn listen(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    resolver.server.has_listen = true;
    let addresses = addresses(resolver, statement, Some(DEFAULT_PORT))?;
    let mut written = Written::default();
    for word in statement.args().iter().skip(1) {
        option(resolver, statement, word, &mut written)?;
    }
    written.options.bind = written.set;
    addresses
        .into_iter()
        .try_for_each(|address| add(resolver, statement, address, &written))
}

/// Adds the open server to an address.
pub(crate) fn add(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    address: ListenAddress,
    written: &Written,
) -> Applied {
    let server = resolver.server.index;
    let error = |message: String| Err(resolver.emerg(statement, statement.arg(1), message));
    let Some(http) = &resolver.http else {
        return Ok(());
    };
    let known = http
        .addresses
        .iter()
        .position(|draft| draft.address == address);
    let Some(known) = known else {
        let draft = AddressDraft {
            address,
            options: written.options.clone(),
            spot: spot(statement, statement.arg(1)),
            options_set: written.set,
            default_set: written.default,
            default_server: server,
            servers: vec![server],
        };
        if let Some(http) = &mut resolver.http {
            http.addresses.push(draft);
        }
        return Ok(());
    };
    if let Some(draft) = http.addresses.get(known) {
        if draft.servers.contains(&server) {
            return error(format!("a duplicate listen {}", draft.address));
        }
        if written.set && draft.options_set {
            return error(format!("duplicate listen options for {}", draft.address));
        }
        if written.default && draft.default_set {
            return error(format!("a duplicate default server for {}", draft.address));
        }
    }
    if let Some(draft) = resolver
        .http
        .as_mut()
        .and_then(|http| http.addresses.get_mut(known))
    {
        draft.servers.push(server);
        let proxy_protocol = draft.options.proxy_protocol || written.options.proxy_protocol;
        let ssl = draft.options.ssl || written.options.ssl;
        let http2 = draft.options.http2 || written.options.http2;
        if written.set {
            draft.options = written.options.clone();
            draft.options_set = true;
        }
        if written.default {
            draft.default_set = true;
            draft.default_server = server;
        }
        draft.options.proxy_protocol = proxy_protocol;
        draft.options.ssl = ssl;
        draft.options.http2 = http2;
    }
    Ok(())
}

/// The default port.
const DEFAULT_PORT: u16 = 80;

/// Length of sun_path with its terminating zero (unix(7)).
const UNIX_PATH_LEN_MAX: usize = 107;

/// An error in an address, as nginx words it.
type Fault = &'static str;

const NO_PORT: Fault = "no port";

/// The addresses that a `listen` names; without a default port it has to name one.
pub(crate) fn addresses(
    resolver: &Resolver<'_>,
    statement: &Statement,
    default_port: Option<u16>,
) -> Applied<Vec<ListenAddress>> {
    let word = statement.arg(1);
    let text = word.bytes.as_slice();
    let is_unix = text
        .get(..5)
        .is_some_and(|head| head.eq_ignore_ascii_case(b"unix:"));
    let found = if is_unix {
        unix_address(text.get(5..).unwrap_or_default()).map(|address| vec![address])
    } else if let Some(inner) = text.strip_prefix(b"[") {
        ipv6_address(inner, default_port).map(|address| vec![address])
    } else {
        ipv4_addresses(resolver, text, default_port)
    };
    found.map_err(|fault| {
        let message = format!(
            "{fault} in \"{}\" of the \"listen\" directive",
            word.display()
        );
        resolver.emerg(statement, word, message)
    })
}

fn unix_address(path: &[u8]) -> Result<ListenAddress, Fault> {
    if path.is_empty() {
        return Err("no path in the unix domain socket");
    }
    if path.len() > UNIX_PATH_LEN_MAX {
        return Err("too long path in the unix domain socket");
    }
    Ok(ListenAddress::Unix(Text::from(path)))
}

/// Parses the part after `[`.
fn ipv6_address(text: &[u8], default_port: Option<u16>) -> Result<ListenAddress, Fault> {
    let close = text
        .iter()
        .position(|&byte| byte == b']')
        .filter(|&close| close > 0);
    let (host, rest) = close
        .and_then(|close| text.split_at_checked(close))
        .ok_or("invalid host")?;
    let host = std::str::from_utf8(host)
        .ok()
        .and_then(|host| host.parse::<Ipv6Addr>().ok());
    let host = host.ok_or("invalid IPv6 address")?;
    let port = match rest {
        [b']'] => default_port.ok_or(NO_PORT)?,
        [b']', b':', port @ ..] => parse_port(port).ok_or("invalid port")?,
        _ => return Err("invalid host"),
    };
    Ok(inet(IpAddr::V6(host), port))
}

/// A port, an address, a name, `*`, with or without `:PORT`.
fn ipv4_addresses(
    resolver: &Resolver<'_>,
    text: &[u8],
    default_port: Option<u16>,
) -> Result<Vec<ListenAddress>, Fault> {
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let colon = text.iter().position(|&byte| byte == b':');
    let (host, port) = match colon.and_then(|colon| text.split_at_checked(colon)) {
        Some((host, port)) => (
            host,
            parse_port(port.get(1..).unwrap_or_default()).ok_or("invalid port")?,
        ),
        // A number alone is a port, anything else a host.
        None if value::number(text).is_some() => {
            return Ok(vec![inet(any, parse_port(text).ok_or("invalid port")?)]);
        }
        None => (text, default_port.ok_or(NO_PORT)?),
    };
    if host.is_empty() {
        return Err("no host");
    }
    if host == b"*" {
        return Ok(vec![inet(any, port)]);
    }
    let address = std::str::from_utf8(host)
        .ok()
        .and_then(|host| host.parse::<Ipv4Addr>().ok());
    if let Some(address) = address {
        return Ok(vec![inet(address.into(), port)]);
    }
    let found = resolver.source.resolve(host);
    if found.is_empty() {
        return Err("host not found");
    }
    Ok(found
        .into_iter()
        .map(|address| inet(address, port))
        .collect())
}

fn inet(address: IpAddr, port: u16) -> ListenAddress {
    ListenAddress::Inet(SocketAddr::new(address, port))
}

fn parse_port(text: &[u8]) -> Option<u16> {
    u16::try_from(value::number(text)?)
        .ok()
        .filter(|&port| port > 0)
}

/// Parameters of protocols that are not supported yet.
const LATER: [(&str, &str); 1] = [("quic", "HTTP/3")];

pub(crate) fn option(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    written: &mut Written,
) -> Applied {
    let fail = |message: String| resolver.emerg(statement, word, message);
    let invalid = |what: &str| fail(format!("invalid {what} \"{}\"", word.display()));
    let (name, argument) = match word.bytes.iter().position(|&byte| byte == b'=') {
        Some(at) => {
            let (name, argument) = word.bytes.split_at(at);
            (name, argument.get(1..))
        }
        None => (word.bytes.as_slice(), None),
    };
    let small = |text: &[u8]| value::number(text).and_then(|number| u32::try_from(number).ok());
    let options = &mut written.options;
    match (name, argument) {
        (b"default_server" | b"default", None) => {
            written.default = true;
            return Ok(());
        }
        (b"proxy_protocol", None) => {
            options.proxy_protocol = true;
            return Ok(());
        }
        (b"ssl", None) => {
            options.ssl = true;
            return Ok(());
        }
        (b"http2", None) => {
            let message = "the \"listen ... http2\" directive is deprecated";
            let help = "use the \"http2\" directive instead";
            options.http2 = true;
            resolver.notice(statement, word, String::from(message), help);
            return Ok(());
        }
        (b"bind", None) => {}
        (b"deferred", None) => options.deferred = true,
        (b"reuseport", None) => options.reuseport = true,
        (b"fastopen", Some(text)) => {
            options.fastopen = Some(small(text).ok_or_else(|| invalid("fastopen"))?);
        }
        (b"backlog", Some(text)) => {
            let backlog = small(text).filter(|&backlog| backlog > 0);
            options.backlog = backlog.ok_or_else(|| invalid("backlog"))?;
        }
        (b"rcvbuf", Some(text)) => {
            options.receive_buffer_bytes =
                Some(value::size(text).ok_or_else(|| invalid("rcvbuf"))?);
        }
        (b"sndbuf", Some(text)) => {
            options.send_buffer_bytes = Some(value::size(text).ok_or_else(|| invalid("sndbuf"))?);
        }
        (b"ipv6only", Some(b"on")) => options.ipv6only = true,
        (b"ipv6only", Some(b"off")) => options.ipv6only = false,
        (b"ipv6only", Some(text)) if text.first() == Some(&b'o') => {
            let shown = String::from_utf8_lossy(text);
            return Err(fail(format!("invalid ipv6only flags \"{shown}\"")));
        }
        (b"so_keepalive", Some(text)) => {
            options.so_keepalive = keepalive(text).ok_or_else(|| {
                let shown = String::from_utf8_lossy(text);
                fail(format!("invalid so_keepalive value: \"{shown}\""))
            })?;
        }
        _ => return other_option(resolver, statement, word),
    }
    written.set = true;
    Ok(())
}

/// A parameter of an unsupported protocol, or an unknown one.
fn other_option(resolver: &mut Resolver<'_>, statement: &Statement, word: &Word) -> Applied {
    let Some((name, what)) = LATER.iter().find(|(name, _)| name.as_bytes() == word.bytes) else {
        return Err(unknown_option(resolver, statement, word));
    };
    let feature = Feature {
        label: format!("listen … {name}"),
        subject: format!("the \"{name}\" parameter is"),
        note: String::from(*what),
        help: format!("{what} comes in a later version; remove the parameter"),
    };
    resolver.not_yet(feature, statement, word);
    Ok(())
}

fn unknown_option(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
) -> Box<crate::diagnostic::Diagnostic> {
    let shown = word.display();
    let message = match resolver.is_in_stream() {
        true => format!("the invalid \"{shown}\" parameter"),
        false => format!("invalid parameter \"{shown}\""),
    };
    let mut error = resolver.emerg(statement, word, message);
    let bytes = &word.bytes;
    if bytes.starts_with(b"setfib=") || bytes.starts_with(b"accept_filter=") {
        error.help = Some(String::from("this parameter is for FreeBSD"));
    } else {
        const KNOWN: [&str; 12] = [
            "default_server",
            "bind",
            "backlog=",
            "deferred",
            "fastopen=",
            "ipv6only=on",
            "ipv6only=off",
            "proxy_protocol",
            "rcvbuf=",
            "reuseport",
            "sndbuf=",
            "so_keepalive=",
        ];
        let nearest = crate::suggest::nearest(bytes, KNOWN.into_iter());
        error.help = nearest.map(|nearest| format!("did you mean \"{nearest}\"?"));
    }
    error
}

/// `on`, `off`, or `IDLE:INTERVAL:COUNT` with at least one of the three.
fn keepalive(text: &[u8]) -> Option<SocketKeepalive> {
    match text {
        b"on" => return Some(SocketKeepalive::On(KeepaliveProbes::default())),
        b"off" => return Some(SocketKeepalive::Off),
        _ => {}
    }
    let mut parts = text.splitn(3, |&byte| byte == b':');
    let mut next = || parts.next().filter(|part| !part.is_empty());
    let (idle, interval, count) = (next(), next(), next());
    let time = |part: Option<&[u8]>| match part {
        None => Some(None),
        Some(part) => value::seconds(part).map(|time| Some(time).filter(|time| !time.is_zero())),
    };
    let count = match count {
        None => None,
        Some(part) => Some(u32::try_from(value::number(part)?).ok()?).filter(|&count| count > 0),
    };
    let probes = KeepaliveProbes {
        idle: time(idle)?,
        interval: time(interval)?,
        count,
    };
    (probes != KeepaliveProbes::default()).then_some(SocketKeepalive::On(probes))
}
