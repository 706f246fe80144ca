//! Whether a text is Tempesta FW's: what stands outside all blocks decides.
//!
//! nginx's main context has none of Tempesta FW's directives, so the first name that only one of the two languages has
//! tells them apart. Names that both have in some place (`listen`, `server`) tell nothing: a piece of an nginx.conf that is
//! given for a whole one gets nginx's message.

use std::sync::Arc;

use super::lexer::{Kind, Lexer};
use super::specification::TABLE;
use crate::directive::Contexts;
use crate::directives;
use crate::lexer::SourceText;

/// Why a text is taken for Tempesta FW's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sign {
    /// The directive.
    pub directive: String,
    /// Its line, from 1.
    pub line: u32,
}

/// The first directive outside of blocks that only Tempesta FW has there.
pub(super) fn sign(text: &[u8]) -> Option<Sign> {
    let text = Arc::new(SourceText {
        path: None,
        bytes: text.to_vec(),
    });
    let mut lexer = Lexer::new(text);
    let mut depth: usize = 0;
    let mut begins = true;
    loop {
        // A quote that nginx's language closes otherwise: no text of Tempesta FW.
        let token = lexer.next().ok()?;
        let name = token.term.display();
        match token.kind {
            Kind::End => return None,
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.checked_sub(1)?,
            Kind::Literal if begins && depth == 0 => {
                let is_own = name == "!include" || is_own(&name);
                if token.is_bare && is_own {
                    return Some(Sign {
                        directive: name,
                        line: token.term.origin.line,
                    });
                }
                if is_nginx(&token.term.bytes) {
                    return None;
                }
            }
            _ => {}
        }
        begins = matches!(token.kind, Kind::Open | Kind::Close | Kind::Semicolon);
    }
}

/// Whether Tempesta FW has a directive of that name, and nginx has none.
fn is_own(name: &str) -> bool {
    let is_known = TABLE.iter().any(|known| known.name == name);
    is_known && directives::find(name.as_bytes(), Contexts::MAIN).is_none()
}

/// Whether nginx's main context has a directive of that name.
fn is_nginx(name: &[u8]) -> bool {
    let found = directives::find(name, Contexts::MAIN);
    found.is_some_and(|directive| directive.contexts.meets(Contexts::MAIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_directive_that_one_language_alone_has_decides() {
        let check = |text: &str, expected: Option<(&str, u32)>| {
            let sign = sign(text.as_bytes());
            let found = sign.as_ref().map(|sign| (&*sign.directive, sign.line));
            assert_eq!(found, expected, "{text}");
        };
        check("# a\nlisten 80;\nsrv_group a {}", Some(("srv_group", 3)));
        check("!include /etc/tempesta/*\n", Some(("!include", 1)));
        check("cache 2;", Some(("cache", 1)));
        check("events {} http { server { listen 80; } }", None);
        check("user www-data;\nlisten 80;", None);
        check("unknown 1;\nvhost a {}", Some(("vhost", 2)));
        check("http { } srv_group a {}", None);
        check("server { listen 80; }", None);
        check("", None);
        check("} listen 80;", None);
    }
}
