//! Variables whose values still change while a connection is a tunnel, up to the line in the access log.

use super::mention::templates_of;
use mill_config::config::template::Part;
use mill_config::config::{Http, Template, Variable};

/// The user variables, by index, whose `map` leads to one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateVariables(Vec<bool>);

impl LateVariables {
    /// Looks through all maps, once more for each level at which they are nested.
    pub(super) fn of(http: &Http) -> Self {
        let mut late = Self(vec![false; http.user_variables.len()]);
        loop {
            let mut maps = http.maps.iter();
            let found = maps.find(|map| {
                let is_known = late.has(&Variable::User(map.variable));
                !is_known && templates_of(map).any(|template| late.is_in(template))
            });
            let place = found.and_then(|map| late.0.get_mut(map.variable));
            let Some(place) = place else { return late };
            *place = true;
        }
    }

    /// Whether the variable is a late one.
    pub(crate) fn has(&self, variable: &Variable) -> bool {
        match variable {
            Variable::User(index) => self.0.get(*index).copied().unwrap_or(false),
            variable => is_late(variable),
        }
    }

    /// Whether the template has a late variable.
    pub(crate) fn is_in(&self, template: &Template) -> bool {
        let mut parts = template.parts().iter();
        parts.any(|part| matches!(part, Part::Variable(variable) if self.has(variable)))
    }
}

/// Whether the value of a variable that nginx defines still changes after an answer of 101.
pub(crate) const fn is_late(variable: &Variable) -> bool {
    matches!(
        variable,
        Variable::TimeLocal
            | Variable::TimeIso8601
            | Variable::Msec
            | Variable::DateLocal
            | Variable::DateGmt
            | Variable::RequestTime
            | Variable::ConnectionTime
            | Variable::BytesSent
            | Variable::BodyBytesSent
            | Variable::RequestCompletion
            | Variable::UpstreamResponseTime
            | Variable::UpstreamResponseLength
            | Variable::UpstreamBytesReceived
            | Variable::UpstreamBytesSent
            | Variable::ConnectionsActive
            | Variable::ConnectionsReading
            | Variable::ConnectionsWriting
            | Variable::ConnectionsWaiting
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_config::{Memory, Options, load};

    #[test]
    fn a_map_is_as_late_as_what_it_is_made_from() {
        let text = "events { } http {
            map $request_time $direct { default 1; }
            map $uri $named { default 1; /a $bytes_sent; }
            map $nested $outer { default 1; }
            map $direct $nested { default 1; }
            map $uri $settled { default $remote_addr; }
        }";
        let options = Options::default();
        let source = Memory::new().with(&*options.conf_file(), text);
        let loaded = load(&source, &options).expect("the configuration is valid");
        let http = loaded.config.http.as_ref().expect("there is http");
        let late = LateVariables::of(http);
        let variables = http.user_variables.iter().enumerate();
        let found: Vec<_> = variables
            .filter(|(index, _)| late.has(&Variable::User(*index)))
            .map(|(_, variable)| String::from_utf8_lossy(&variable.name).into_owned())
            .collect();
        assert_eq!(found.len(), 4, "{found:?}");
        for name in ["direct", "named", "nested", "outer"] {
            assert!(found.iter().any(|known| known == name), "{name}");
        }
    }
}
