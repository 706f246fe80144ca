//! The variables of groups of servers, and of what is sent to them.

use super::Mentions;
use mill_config::config::settings::{
    Amount, BindAddress, CookieName, PassSettings, PassStore, ProxyHttpSettings, ProxyProtocol,
    ProxyRedirect, ProxyRewrite, RewritePattern,
};
use mill_config::config::{Balancing, Location, PassProtocol, PassTarget, Sticky, Upstream};

impl Mentions {
    /// What chooses a server of the group.
    pub(super) fn upstream(&mut self, group: &Upstream) {
        if let Balancing::Hash { key, .. } = &group.balancing {
            self.template(key);
        }
        match &group.sticky {
            None => {}
            Some(Sticky::Cookie(cookie)) => {
                let templates = cookie.domain.iter().chain(&cookie.samesite);
                templates.for_each(|template| self.template(template));
            }
            Some(Sticky::Route(variables)) => {
                variables
                    .iter()
                    .for_each(|variable| self.variable(variable));
            }
            Some(Sticky::Learn(learn)) => {
                let variables = learn.create.iter().chain(&learn.lookup);
                variables.for_each(|variable| self.variable(variable));
            }
        }
    }

    /// How a location passes requests on.
    pub(super) fn passing(&mut self, location: &Location) {
        if let Some(pass) = &location.pass
            && let PassTarget::Evaluated(target) = &pass.target
        {
            self.template(target);
        }
        for protocol in [
            PassProtocol::Http,
            PassProtocol::Fastcgi,
            PassProtocol::Uwsgi,
            PassProtocol::Scgi,
            PassProtocol::Memcached,
        ] {
            self.pass_settings(location.pass_settings(protocol));
        }
        self.proxy_http(&location.proxy_http);
        let params = (location.fastcgi_params.params.iter())
            .chain(&location.uwsgi_params.params)
            .chain(&location.scgi_params.params);
        params.for_each(|param| self.template(&param.value));
        let hints = location.headers.early_hints.iter();
        hints.for_each(|condition| self.template(condition));
    }

    fn pass_settings(&mut self, settings: &PassSettings) {
        if let Amount::Evaluated(rate) = &settings.limit_rate {
            self.template(rate);
        }
        if let PassStore::Path(path) = &settings.store {
            self.template(path);
        }
        if let Some(bind) = &settings.bind
            && let BindAddress::Evaluated(address) = &bind.address
        {
            self.template(address);
        }
    }

    fn proxy_http(&mut self, settings: &ProxyHttpSettings) {
        self.local_address |= settings.proxy_protocol != ProxyProtocol::Off;
        let fields = settings.set_header.iter().map(|field| &field.value);
        let templates = fields.chain(&settings.set_body).chain(&settings.method);
        templates.for_each(|template| self.template(template));
        if let ProxyRedirect::Rules(rules) = &settings.redirect {
            self.rewrites(rules);
        }
        self.rewrites(&settings.cookie_domain);
        self.rewrites(&settings.cookie_path);
        for rule in &settings.cookie_flags {
            if let CookieName::Name(name) = &rule.cookie {
                self.template(name);
            }
            rule.flags.iter().for_each(|flag| self.template(flag));
        }
    }

    fn rewrites(&mut self, rules: &[ProxyRewrite]) {
        for rule in rules {
            if let RewritePattern::Prefix(text) | RewritePattern::Domain(text) = &rule.pattern {
                self.template(text);
            }
            self.template(&rule.replacement);
        }
    }
}
