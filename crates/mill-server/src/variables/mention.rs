//! The variables that a configuration mentions.
//!
//! Some families cost something for each request: `$tcpinfo_…` a system call, `$sent_http_…` a copy of the answer's
//! head. A configuration that does not name them does not pay for them.

mod passing;

use super::late::LateVariables;
use mill_config::config::settings::{Amount, Charset, DisableSymlinks, Document};
use mill_config::config::template::Part;
use mill_config::config::{
    Condition, Config, Expires, Http, Instruction, Location, LocationTree, LogPath, Map, Template,
    TryFallback, Variable,
};

/// Facts about the variables of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Any of `$tcpinfo_…`.
    pub transport: bool,
    /// The address that the client has connected to: `$server_addr`, the API, `proxy_protocol` to servers.
    pub local_address: bool,
    /// Any of `$sent_http_…`.
    pub sent_fields: bool,
    /// `$request_body`.
    pub request_body: bool,
    /// `$sent_http_connection` or `$sent_http_keep_alive`, which differ from one answer to the next.
    pub sent_connection: bool,
    /// User variables, by index, that some `set` assigns to: nginx warns when one is used before.
    assigned: Vec<bool>,
    /// Those that change until the end of a tunnel.
    pub(crate) late: LateVariables,
}

/// All that the value of a map may be made from.
pub(super) fn templates_of(map: &Map) -> impl Iterator<Item = &Template> {
    let tables = [&map.exact, &map.suffixes, &map.prefixes];
    let named = tables.into_iter().flatten().map(|(_, value)| value);
    let patterns = map.patterns.iter().map(|(_, value)| value);
    let values = named.chain(patterns).chain(&map.default);
    [&map.source]
        .into_iter()
        .chain(values.map(|value| &value.0))
}

impl Mentions {
    /// Reads the whole configuration, once.
    pub fn of(config: &Config) -> Self {
        let mut mentions = Self::default();
        if let Some(http) = &config.http {
            mentions.http(http);
        }
        mentions
    }

    /// Whether some `set` assigns to the user variable.
    pub fn is_assigned(&self, variable: usize) -> bool {
        self.assigned.get(variable).copied().unwrap_or(false)
    }

    fn http(&mut self, http: &Http) {
        self.assigned.resize(http.user_variables.len(), false);
        for format in &http.log_formats {
            self.template(&format.template);
        }
        let limited = http.request_zones.iter().map(|zone| &zone.key);
        let connections = http.connection_zones.iter().map(|zone| &zone.key);
        limited
            .chain(connections)
            .for_each(|key| self.template(key));
        for map in &http.maps {
            templates_of(map).for_each(|template| self.template(template));
        }
        self.late = LateVariables::of(http);
        for group in &http.upstreams {
            self.upstream(group);
        }
        for server in &http.servers {
            self.location(&server.location);
            self.locations(&server.locations);
            for (_, location) in &server.named_locations {
                self.location(location);
            }
        }
    }

    fn locations(&mut self, tree: &LocationTree) {
        for location in tree.iter() {
            self.location(location);
        }
    }

    fn location(&mut self, location: &Location) {
        self.locations(&location.locations);
        self.settings(location);
        self.passing(location);
        self.local_address |= location.api.is_some();
        self.instructions(&location.instructions);
        if let Some(try_files) = &location.try_files {
            for candidate in &try_files.candidates {
                self.template(&candidate.path);
            }
            if let TryFallback::Redirect(target) = &try_files.fallback {
                self.template(target);
            }
        }
        if let Some(limit) = &location.limit_except {
            self.location(&limit.location);
        }
    }

    fn settings(&mut self, location: &Location) {
        let (Document::Root(path) | Document::Alias { path, .. } | Document::AliasWhole(path)) =
            &location.files.document;
        self.template(path);
        if let DisableSymlinks::On { from: Some(from) }
        | DisableSymlinks::IfNotOwner { from: Some(from) } = &location.open_file.disable_symlinks
        {
            self.template(from);
        }
        for charset in [&location.charset.name, &location.charset.source] {
            if let Charset::Evaluated(variable) = charset {
                self.variable(variable);
            }
        }
        if let Expires::Evaluated { value, .. } = &location.headers.expires {
            self.template(value);
        }
        for amount in [&location.limit_rate.rate, &location.limit_rate.after] {
            if let Amount::Evaluated(template) = amount {
                self.template(template);
            }
        }
        let http = &location.proxy_http;
        let set = http.set_header.iter().map(|field| &field.value);
        for template in set.chain(&http.set_body).chain(&http.method) {
            self.template(template);
        }
        let headers = &location.headers;
        let added = headers.added.iter().chain(&headers.trailers);
        let pages = location.error_page.pages.iter();
        let templates = (added.map(|header| &header.value))
            .chain(pages.map(|page| &page.target))
            .chain(&location.files.index);
        templates.for_each(|template| self.template(template));
        for log in &location.log.access_logs {
            if let LogPath::Evaluated(path) = &log.path {
                self.template(path);
            }
            log.condition
                .iter()
                .for_each(|condition| self.template(condition));
        }
    }

    fn instructions(&mut self, list: &[Instruction]) {
        for instruction in list {
            match instruction {
                Instruction::Set { variable, value } => {
                    if let Variable::User(index) = variable
                        && let Some(assigned) = self.assigned.get_mut(*index)
                    {
                        *assigned = true;
                    }
                    self.template(value);
                }
                Instruction::Rewrite {
                    replacement, args, ..
                } => {
                    self.template(replacement);
                    args.iter().for_each(|args| self.template(args));
                }
                Instruction::Return { text, .. } => {
                    text.iter().for_each(|text| self.template(text));
                }
                Instruction::If {
                    condition,
                    body,
                    location,
                } => {
                    self.condition(condition);
                    self.instructions(body);
                    location.iter().for_each(|location| self.location(location));
                }
                Instruction::Break => {}
            }
        }
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Truthy(variable) | Condition::Matches { variable, .. } => {
                self.variable(variable);
            }
            Condition::Equal {
                variable, value, ..
            } => {
                self.variable(variable);
                self.template(value);
            }
            Condition::File { path, .. } => self.template(path),
        }
    }

    fn template(&mut self, template: &Template) {
        for part in template.parts() {
            if let Part::Variable(variable) = part {
                self.variable(variable);
            }
        }
    }

    fn variable(&mut self, variable: &Variable) {
        match variable {
            Variable::SentHttp(name) => {
                self.sent_fields = true;
                self.sent_connection |= matches!(&**name, b"connection" | b"keep_alive");
            }
            Variable::RequestBody => self.request_body = true,
            Variable::ServerAddr => self.local_address = true,
            Variable::TcpinfoRtt
            | Variable::TcpinfoRttvar
            | Variable::TcpinfoSndCwnd
            | Variable::TcpinfoRcvSpace => self.transport = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_config::{Memory, Options, load};

    fn mentions(directives: &str) -> Mentions {
        let options = Options::default();
        let text = format!("events {{ }} http {{ {directives} }}");
        let source = Memory::new().with(&*options.conf_file(), text);
        let loaded = load(&source, &options).expect("the configuration is valid");
        Mentions::of(&loaded.config)
    }

    #[test]
    fn a_variable_is_found_wherever_it_may_stand() {
        let check = |directives: &str| {
            assert!(mentions(directives).transport, "{directives}");
            let without = directives.replace("$tcpinfo_rtt", "$remote_addr");
            assert!(!mentions(&without).transport, "{without}");
        };
        check("log_format f $tcpinfo_rtt;");
        check("map $tcpinfo_rtt $a { default 1; }");
        check("map $uri $a { default $tcpinfo_rtt; }");
        check("map $uri $a { x $tcpinfo_rtt; }");
        check("map $uri $a { ~x $tcpinfo_rtt; }");
        check("server { set $a $tcpinfo_rtt; }");
        check("server { return 200 $tcpinfo_rtt; }");
        check("server { rewrite ^ /x$tcpinfo_rtt; }");
        check("server { rewrite ^ /x?a=$tcpinfo_rtt; }");
        check("server { if ($tcpinfo_rtt) { } }");
        check("server { if ($uri = $tcpinfo_rtt) { } }");
        check("server { if (-f $tcpinfo_rtt/a) { } }");
        check("server { if ($uri) { set $a $tcpinfo_rtt; } }");
        check("server { location / { if ($uri) { add_header A $tcpinfo_rtt; } } }");
        check("server { location /a { location /a/b { add_header A $tcpinfo_rtt; } } }");
        check("server { location @a { add_header A $tcpinfo_rtt; } }");
        check("server { location / { limit_except GET { access_log $tcpinfo_rtt/a; } } }");
        check("server { try_files $tcpinfo_rtt /a; }");
        check("server { try_files /a $tcpinfo_rtt; }");
        check("server { error_page 404 $tcpinfo_rtt; }");
        check("server { index $tcpinfo_rtt; }");
        check("server { access_log $tcpinfo_rtt/log; }");
        check("server { access_log /log combined if=$tcpinfo_rtt; }");
        check("map $uri $a { default 1; } server { expires $tcpinfo_rtt; }");
        check("server { limit_rate $tcpinfo_rtt; }");
        check("server { charset $tcpinfo_rtt; }");
        check("server { source_charset $tcpinfo_rtt; }");
        check("server { disable_symlinks on from=$tcpinfo_rtt; }");
    }

    #[test]
    fn a_variable_is_found_in_what_goes_to_servers() {
        let check = |directives: &str| {
            assert!(mentions(directives).transport, "{directives}");
            let without = directives.replace("$tcpinfo_rtt", "$remote_addr");
            assert!(!mentions(&without).transport, "{without}");
        };
        let group =
            |directive: &str| check(&format!("upstream a {{ server 127.0.0.1; {directive} }}"));
        group("hash $tcpinfo_rtt;");
        group("sticky route $tcpinfo_rtt;");
        group("sticky cookie a domain=$tcpinfo_rtt;");
        group("sticky learn create=$tcpinfo_rtt lookup=$uri zone=z:64k;");
        group("sticky learn create=$uri lookup=$tcpinfo_rtt zone=z:64k;");
        let location =
            |directive: &str| check(&format!("server {{ location / {{ {directive} }} }}"));
        location("proxy_pass http://$tcpinfo_rtt;");
        location("proxy_set_header A $tcpinfo_rtt;");
        location("proxy_set_body $tcpinfo_rtt;");
        location("proxy_method $tcpinfo_rtt;");
        location("proxy_limit_rate $tcpinfo_rtt;");
        location("proxy_bind $tcpinfo_rtt;");
        location("proxy_store /a/$tcpinfo_rtt;");
        location("proxy_redirect $tcpinfo_rtt /;");
        location("proxy_redirect / $tcpinfo_rtt;");
        location("proxy_cookie_domain $tcpinfo_rtt a;");
        location("proxy_cookie_path / $tcpinfo_rtt;");
        location("proxy_cookie_flags $tcpinfo_rtt secure;");
        location("proxy_cookie_flags a $tcpinfo_rtt;");
        location("fastcgi_param A $tcpinfo_rtt;");
        location("uwsgi_param A $tcpinfo_rtt;");
        location("scgi_param A $tcpinfo_rtt;");
        location("early_hints $tcpinfo_rtt;");
    }

    #[test]
    fn what_the_transport_measures_is_one_family() {
        for name in ["rtt", "rttvar", "snd_cwnd", "rcv_space"] {
            let found = mentions(&format!("log_format f $tcpinfo_{name};"));
            assert!(found.transport, "{name}");
        }
        assert!(mentions("server { root /a/$tcpinfo_rtt; }").transport);
        assert!(mentions("server { location /a { alias /a/$tcpinfo_rtt; } }").transport);
        assert!(!mentions("log_format f $remote_addr;").transport);
    }

    #[test]
    fn the_address_that_was_connected_to_is_needed_by_few() {
        let check = |directives: &str, expected| {
            let found = mentions(directives).local_address;
            assert_eq!(found, expected, "{directives}");
        };
        check("log_format f $server_addr;", true);
        check(
            "server { location / { fastcgi_param A $server_addr; } }",
            true,
        );
        check("server { location / { millstream_api; } }", true);
        check(
            "server { location / { proxy_protocol v1; proxy_pass http://127.0.0.1; } }",
            true,
        );
        check(
            "server { location / { proxy_pass http://127.0.0.1; } }",
            false,
        );
        check("log_format f $server_port;", false);
    }

    #[test]
    fn only_set_assigns() {
        let found =
            mentions("server { if ($uri ~ (?<named>.)) { set $inside 1; } set $outside 1; }");
        let assigned = (0..4).filter(|index| found.is_assigned(*index)).count();
        assert_eq!(assigned, 2);
    }
}
