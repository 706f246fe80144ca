//! Features of nginx that Millstream does not have yet: all of them are reported at once, each with its first place and
//! its count, so that a user sees at once how far a configuration is from being accepted.

use crate::config::LogLevel;
use crate::diagnostic::Diagnostic;
use crate::lexer::{Statement, Token, Word};
use crate::resolve::draft::Origin;
use crate::resolve::{Applied, Resolver};

/// A feature of nginx that is not supported yet.
pub(crate) struct Feature {
    /// Its name in a list; equal ones are counted together.
    pub(crate) label: String,
    /// The beginning of the message about it alone, with its verb: `directive "x" is`.
    pub(crate) subject: String,
    /// Its module, for the list.
    pub(crate) note: String,
    /// Advice about it alone.
    pub(crate) help: String,
}

/// All uses of a feature.
struct Uses {
    feature: Feature,
    count: usize,
    first: Origin,
}

/// The unsupported features of a configuration, in the order of the text.
#[derive(Default)]
pub(crate) struct Unsupported {
    uses: Vec<Uses>,
}

impl Unsupported {
    /// The error that refuses the configuration, if it uses any.
    pub(crate) fn diagnostic(&self) -> Option<Box<Diagnostic>> {
        let first = self.uses.first()?;
        let count: usize = self.uses.iter().map(|uses| uses.count).sum();
        let mut error =
            Diagnostic::new(LogLevel::Emerg, "", crate::diagnostic::SourcePosition::None);
        first.first.show_in(&mut error);
        let known = "known to nginx, but not to Millstream yet";
        if let [only] = self.uses.as_slice() {
            let often = match count {
                1 => String::new(),
                count => format!("; it stands {count} times, first"),
            };
            error.message = format!("{} {known}{often}", only.feature.subject);
            error.help = Some(only.feature.help.clone());
            return Some(Box::new(error));
        }
        let kinds = self.uses.len();
        error.message = format!(
            "{kinds} directives or parameters are {known}; they stand {count} times, first"
        );
        error.details = self.list();
        error.help = Some(String::from(
            "none of this is ignored: remove it, or leave this configuration to nginx; docs/directives.md lists what there is",
        ));
        Some(Box::new(error))
    }

    /// Records a use.
    pub(crate) fn add(&mut self, feature: Feature, first: Origin) {
        let mut known = self.uses.iter_mut();
        if let Some(uses) = known.find(|uses| uses.feature.label == feature.label) {
            uses.count += 1;
            return;
        }
        self.uses.push(Uses {
            feature,
            count: 1,
            first,
        });
    }

    /// A line for each feature, as a table.
    fn list(&self) -> Vec<String> {
        let width = |cells: Vec<usize>| cells.into_iter().max().unwrap_or(0);
        let uses = || self.uses.iter();
        let labels = width(
            uses()
                .map(|uses| uses.feature.label.chars().count())
                .collect(),
        );
        let counts = width(uses().map(|uses| uses.count.to_string().len()).collect());
        let places = width(uses().map(|uses| uses.place().len()).collect());
        uses()
            .map(|uses| {
                let (feature, count, place) = (&uses.feature, uses.count, uses.place());
                let times = if count == 1 { "time, " } else { "times," };
                format!(
                    "{:labels$}  {count:counts$} {times} first in {place:places$}  {}",
                    feature.label, feature.note
                )
            })
            .collect()
    }
}

impl Uses {
    fn place(&self) -> String {
        self.first.place().to_string()
    }
}

impl Resolver<'_> {
    /// Records a use of an unsupported feature; the configuration is refused at its end.
    pub(crate) fn not_yet(&mut self, feature: Feature, statement: &Statement, word: &Word) {
        self.unsupported.add(feature, Origin::of(statement, word));
    }

    /// The same for a directive, with the block that it may open.
    pub(crate) fn directive_not_yet(
        &mut self,
        name: &'static str,
        module: &'static str,
        statement: &Statement,
    ) -> Applied {
        let feature = Feature {
            label: String::from(name),
            subject: format!("directive \"{name}\" is"),
            note: String::from(module),
            help: format!("it is part of nginx's {module}"),
        };
        self.not_yet(feature, statement, statement.name());
        if statement.opens_block {
            self.skip_block()?;
        }
        Ok(())
    }

    /// Skips a block whose `{` has been read, with its content.
    fn skip_block(&mut self) -> Applied {
        let mut depth: usize = 1;
        while depth > 0 {
            match self.next_token()? {
                Token::Statement(statement) => depth += usize::from(statement.opens_block),
                Token::BlockEnd => depth -= 1,
                Token::End => return Err(self.unclosed_block()),
            }
        }
        Ok(())
    }
}
