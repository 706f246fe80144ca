//! `listen` in `stream`: an address belongs to one server.

use crate::directives::listen::{self, Written};
use crate::lexer::{Statement, Word};
use crate::resolve::draft::AddressDraft;
use crate::resolve::unsupported::Feature;
use crate::resolve::{Applied, Resolver, spot};

pub(super) fn listen(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    resolver.server.has_listen = true;
    let addresses = listen::addresses(resolver, statement, None)?;
    let mut written = Written::default();
    for word in statement.args().iter().skip(1) {
        option(resolver, statement, word, &mut written)?;
    }
    written.options.bind = written.set;
    let server = resolver.server.index;
    for address in addresses {
        let Some(open) = &mut resolver.http else {
            return Ok(());
        };
        if open.addresses.iter().any(|known| known.address == address) {
            let message = format!("duplicate \"{address}\" address and port pair");
            return Err(resolver.emerg(statement, statement.arg(1), message));
        }
        open.addresses.push(AddressDraft {
            address,
            options: written.options.clone(),
            spot: spot(statement, statement.arg(1)),
            options_set: written.set,
            default_set: false,
            default_server: server,
            servers: vec![server],
        });
    }
    Ok(())
}

fn option(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    written: &mut Written,
) -> Applied {
    match word.bytes.as_slice() {
        b"udp" => {
            let feature = Feature {
                label: String::from("listen … udp"),
                subject: String::from("the \"udp\" parameter is"),
                note: String::from("datagrams"),
                help: String::from(
                    "servers of stream pass on TCP alone; remove this server, or leave it to nginx",
                ),
            };
            resolver.not_yet(feature, statement, word);
            Ok(())
        }
        b"default_server" | b"default" | b"http2" | b"quic" => {
            let message = format!("the invalid \"{}\" parameter", word.display());
            Err(resolver.emerg(statement, word, message))
        }
        _ => listen::option(resolver, statement, word, written),
    }
}
