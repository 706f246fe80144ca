//! Millstream's own directives, in nginx's grammar.

use crate::Text;
use crate::config::NetworkStack;
use crate::diagnostic::Spot;
use crate::directive::{Apply, Arity, Directive, HTTP_SERVER, MAIN, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, place, snippet};

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "network_stack",
        MAIN,
        Arity::AtLeast(1),
        "kernel",
        Apply::With(network_stack),
        "Millstream's own: the network stack to serve on beside the kernel's, as --stack on the command line: a device, and its options.",
    ),
    once(
        "accept_bare_lf",
        HTTP_SERVER,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.client_header.accept_bare_lf),
        "Millstream's own: let lines of a request's head end in LF without CR, as nginx does; chunks never. The default server of the socket decides.",
    ),
];

/// `network_stack kernel`, or a device and options, which mill-device parses. They are written as on the command line
/// or as separate arguments.
fn network_stack(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let words = statement.args();
    if let [word] = words
        && word.bytes == b"kernel"
    {
        return Ok(());
    }
    let texts: Vec<&[u8]> = words.iter().map(|word| word.bytes.as_slice()).collect();
    let first = words.first().map_or(0, |word| word.span.start);
    let end = words.last().map_or(first, |word| word.span.end);
    resolver.main.network_stack = Some(NetworkStack {
        text: Text::from(texts.join(&b","[..])),
        spot: Spot {
            place: place(&statement.text, statement.line),
            snippet: snippet(&statement.text, &(first..end)),
        },
    });
    Ok(())
}
