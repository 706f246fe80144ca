//! Inheritance: drafts become the [`Config`].

use std::cell::RefCell;
use std::sync::Arc;

use crate::Text;
use crate::config::location::{LimitExcept, LocationName};
use crate::config::log::{ErrorLog, ErrorLogTarget, LogPath};
use crate::config::pass::PassProtocol;
use crate::config::settings::{Document, PassTlsSettings, ProxyRedirect, Settings, SettingsDraft};
use crate::config::{
    AccessLog, Api, Config, Events, HealthCheck, HealthCheckKind, Http, Instruction, Location,
    LocationTree, LogLevel, Main, Match, Pass, PassTarget, Server, ServerName, TempPath, Template,
    Upstream, UserVariable, WorkerCount,
};
use crate::diagnostic::{Diagnostic, SourcePosition};
use crate::directives::acme::order;
use crate::directives::health_check::HealthCheckDraft;
use crate::directives::pass::cache_path;
use crate::directives::pass::target::{PassDraft, PassTargetDraft};
use crate::directives::upstream::zone;
use crate::directives::{grpc, mime};
use crate::resolve::draft::{HttpDraft, LocationDraft, ServerDraft, Step};
use crate::resolve::variables::VariableTable;
use crate::resolve::{Applied, Resolver, join, passing, probing, recoding, streams, templates};

/// Makes the configuration from everything that has been parsed.
pub(crate) fn finish(resolver: &mut Resolver<'_>) -> Applied<Config> {
    let http = resolver.http.take();
    let main = main(resolver);
    let Some(events) = resolver.main.events.take() else {
        let message = "no \"events\" section in configuration";
        return Err(Box::new(Diagnostic::new(
            LogLevel::Emerg,
            message,
            SourcePosition::None,
        )));
    };
    let http = http
        .map(|http| finish_http(resolver, http, &main))
        .transpose()?;
    let stream = resolver.stream.take();
    let stream = stream
        .map(|stream| streams::finish(resolver, stream, &main))
        .transpose()?;
    Ok(Config {
        main,
        events: Events { ..events },
        http,
        stream,
    })
}

fn main(resolver: &mut Resolver<'_>) -> Main {
    let paths = &resolver.options.paths;
    let prefix = Text::from(paths.prefix.as_slice());
    let pid = join(&prefix, &paths.pid);
    let lock_file = join(&prefix, &paths.lock);
    let target = match paths.error_log.as_slice() {
        b"stderr" => ErrorLogTarget::Stderr,
        path => ErrorLogTarget::File(join(&prefix, path)),
    };
    let draft = &mut resolver.main;
    let mut error_log = std::mem::take(&mut draft.error_log);
    if error_log.is_empty() {
        error_log.push(ErrorLog {
            target,
            level: LogLevel::Error,
        });
    }
    Main {
        prefix,
        user: draft.user.take(),
        worker_processes: draft.worker_processes.unwrap_or(WorkerCount::Count(1)),
        worker_cpu_affinity: draft.worker_cpu_affinity.take(),
        worker_rlimit_nofile: draft.worker_rlimit_nofile,
        worker_rlimit_core: draft.worker_rlimit_core,
        worker_priority: draft.worker_priority.unwrap_or(0),
        worker_shutdown_timeout: draft.worker_shutdown_timeout,
        pid: draft.pid.take().unwrap_or(pid),
        lock_file: draft.lock_file.take().unwrap_or(lock_file),
        daemon: draft.daemon.unwrap_or(true),
        master_process: draft.master_process.unwrap_or(true),
        working_directory: draft.working_directory.take(),
        timer_resolution: draft.timer_resolution,
        env: std::mem::take(&mut draft.env),
        thread_pool: draft
            .thread_pools
            .get(b"default".as_slice())
            .copied()
            .unwrap_or_default(),
        network_stack: draft.network_stack.take(),
        error_log,
    }
}

fn finish_http(resolver: &mut Resolver<'_>, mut http: HttpDraft, main: &Main) -> Applied<Http> {
    let settings = std::mem::take(&mut http.level.settings);
    let settings = settings.inherit(&defaults(resolver, main));
    let drafts = std::mem::take(&mut http.upstreams);
    let upstreams = resolver.finish_upstreams(drafts, &settings.resolver)?;
    let tls_passes = RefCell::default();
    let issuers = std::mem::take(&mut http.acme_issuers);
    let acme_issuers = order::finish(resolver, issuers, &mut http.servers, &settings.resolver)?;
    let outer = Enclosing {
        settings,
        groups: &upstreams.by_draft,
        pass: None,
        api: None,
        stub_status: false,
        metrics: false,
        status_zone: None,
        matches: &http.matches,
        tls_passes: &tls_passes,
    };
    let mut drafts = std::mem::take(&mut http.servers);
    let mut servers = Vec::with_capacity(drafts.len());
    for draft in &mut drafts {
        servers.push(Arc::new(outer.finish_server(draft)?));
    }
    let cache_zones = cache_path::finish(std::mem::take(&mut http.caches))?;
    let missing = passing::missing_keys(&servers, &http.end);
    resolver.remarks.extend(missing);
    passing::check(&servers, &http.end)?;
    let listeners = resolver.listeners(&http.addresses, &drafts, &servers)?;
    let user_variables = user_variables(&mut resolver.variables)?;
    recoding::check(&servers)?;
    zone::check(&http.zones)?;
    Ok(Http {
        listeners,
        upstreams: upstreams.groups,
        tls_passes: tls_passes.take(),
        probing: probing::locations(&servers),
        acme_issuers,
        cache_zones,
        servers,
        status_zones: http.status_zones,
        request_zones: http.request_zones.finish(),
        connection_zones: http.connection_zones.finish(),
        log_formats: http.log_formats,
        frang: http.frang,
        maps: http.maps,
        user_variables,
    })
}

/// The variables that a block defines; it must not use others.
pub(super) fn user_variables(table: &mut VariableTable) -> Applied<Vec<UserVariable>> {
    table.finish().map_err(|(name, origin)| {
        let message = format!("unknown \"{}\" variable", name.display());
        let mut error = Diagnostic::new(LogLevel::Emerg, message, SourcePosition::None);
        if let Some(origin) = origin {
            origin.show_in(&mut error);
        }
        error.help = templates::nearest_variable(&name);
        Box::new(error)
    })
}

/// Defaults, some of which depend on paths and on the main context.
pub(super) fn defaults(resolver: &Resolver<'_>, main: &Main) -> Settings {
    let paths = &resolver.options.paths;
    let full = |path: &[u8]| join(&main.prefix, path);
    let mut draft = SettingsDraft::default();
    draft.files.document = Some(Document::Root(Template::literal(full(b"html"))));
    draft.log.access_logs = Some(vec![AccessLog {
        path: LogPath::File(full(&paths.access_log)),
        format: 0,
        buffer: None,
        condition: None,
    }]);
    draft.log.error_logs = Some(main.error_log.clone());
    draft.mime.types = Some(Arc::new(mime::default_types()));
    let temp_path = |path: &[u8], levels| {
        Some(TempPath {
            path: full(path),
            levels,
        })
    };
    draft.client_body.temp_path = temp_path(&paths.client_body_temp, [0; 3]);
    draft.proxy.temp_path = temp_path(&paths.proxy_temp, [1, 2, 0]);
    draft.fastcgi.temp_path = temp_path(&paths.fastcgi_temp, [1, 2, 0]);
    draft.uwsgi.temp_path = temp_path(&paths.uwsgi_temp, [1, 2, 0]);
    draft.scgi.temp_path = temp_path(&paths.scgi_temp, [1, 2, 0]);
    draft.memcached.buffering = Some(false);
    draft.memcached.max_temp_file_size = Some(0);
    draft.memcached.intercept_errors = Some(true);
    draft.memcached.force_ranges = Some(true);
    draft.memcached.pass_request_headers = Some(false);
    draft.memcached.pass_request_body = Some(false);
    draft.inherit(&Settings::default())
}

/// What a block takes from the block around it.
struct Enclosing<'a> {
    settings: Settings,
    /// Groups of servers in the order of their drafts.
    groups: &'a [Arc<Upstream>],
    /// The handlers of a location: as in nginx, an `if` or a `limit_except` in it changes settings, not the handler, unless
    /// it has a handler of its own.
    pass: Option<Arc<Pass>>,
    api: Option<Api>,
    stub_status: bool,
    metrics: bool,
    /// Of the location around it.
    status_zone: Option<usize>,
    matches: &'a [Arc<Match>],
    tls_passes: &'a RefCell<Vec<Arc<PassTlsSettings>>>,
}

impl Enclosing<'_> {
    fn finish_server(&self, draft: &mut ServerDraft) -> Applied<Server> {
        let mut level = std::mem::take(&mut draft.level);
        let mut own = self.with(&mut level);
        let status_zone = own.status_zone.take();
        let mut named = Vec::new();
        let mut others = Vec::new();
        for location in std::mem::take(&mut level.locations) {
            let location = Arc::new(own.finish_location(location)?);
            match &location.name {
                LocationName::Named(name) => named.push((name.clone(), location)),
                _ => others.push(location),
            }
        }
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        named.dedup_by(|(later, _), (first, _)| later == first);
        let location = Location {
            name: LocationName::Server,
            instructions: own.finish_steps(std::mem::take(&mut level.steps))?.into(),
            try_files: level.try_files.take(),
            limit_except: None,
            stub_status: own.stub_status,
            metrics: own.metrics,
            api: None,
            status_zone,
            health_checks: Vec::new(),
            pass: None,
            locations: LocationTree::default(),
            settings: own.settings,
        };
        Ok(Server {
            index: draft.index,
            name: first_name(draft),
            names: draft.names.clone(),
            acme: draft.acme_order.take(),
            location: Arc::new(location),
            locations: LocationTree::new(others),
            named_locations: named,
        })
    }

    /// The block's own settings and handlers, for what is inside it.
    fn with(&self, draft: &mut LocationDraft) -> Self {
        let mut settings = std::mem::take(&mut draft.settings).inherit(&self.settings);
        let pass = draft.pass.take().map(|pass| {
            if let ProxyRedirect::Default = settings.proxy_http.redirect
                && let Some(rule) = pass.default_redirect()
            {
                let redirect = ProxyRedirect::Rules(vec![rule]);
                let mut own = SettingsDraft::default().proxy_http;
                own.redirect = Some(redirect);
                settings.proxy_http = own.inherit(&settings.proxy_http);
            }
            Arc::new(self.finish_pass(pass))
        });
        if let Some(pass) = pass.as_ref().or(self.pass.as_ref())
            && (pass.tls || matches!(pass.target, PassTarget::Evaluated(_)))
        {
            let mut tls_passes = self.tls_passes.borrow_mut();
            let of_pass = match pass.protocol {
                PassProtocol::Uwsgi => &settings.uwsgi_tls,
                _ if pass.is_grpc => &settings.grpc_tls,
                _ => &settings.proxy_tls,
            };
            if !(tls_passes.iter()).any(|known| Arc::ptr_eq(known, of_pass)) {
                tls_passes.push(Arc::clone(of_pass));
            }
        }
        Self {
            tls_passes: self.tls_passes,
            settings,
            groups: self.groups,
            pass,
            api: draft.api,
            stub_status: draft.stub_status,
            metrics: draft.metrics,
            status_zone: draft.status_zone.unwrap_or(self.status_zone),
            matches: self.matches,
        }
    }

    fn finish_pass(&self, draft: PassDraft) -> Pass {
        let target = match draft.target {
            PassTargetDraft::Evaluated(template) => PassTarget::Evaluated(template),
            PassTargetDraft::Group(index) => match self.groups.get(index) {
                Some(group) => PassTarget::Group(Arc::clone(group)),
                None => PassTarget::Evaluated(Template::default()),
            },
        };
        Pass {
            protocol: draft.protocol,
            tls: draft.tls,
            is_grpc: draft.is_grpc,
            target,
            replaced: draft.location.len(),
            uri: draft.uri,
            host: draft.host,
            port: draft.port,
            text: draft.text,
            memcached_key: draft.memcached_key,
        }
    }

    fn finish_location(&self, mut draft: LocationDraft) -> Applied<Location> {
        let own = self.with(&mut draft);
        let nested = std::mem::take(&mut draft.locations);
        let nested: Vec<_> = nested
            .into_iter()
            .map(|nested| Ok(Arc::new(own.finish_location(nested)?)))
            .collect::<Applied<_>>()?;
        let limit_except = match draft.limit_except.take() {
            None => None,
            Some((methods, inner)) => Some(LimitExcept {
                methods,
                location: Arc::new(own.finish_condition(*inner)?),
            }),
        };
        let health_checks = own.finish_health_checks(draft.health_checks)?;
        Ok(Location {
            name: draft.name.unwrap_or(LocationName::Condition),
            instructions: own.finish_steps(draft.steps)?.into(),
            try_files: draft.try_files,
            limit_except,
            stub_status: own.stub_status,
            metrics: own.metrics,
            api: own.api,
            status_zone: own.status_zone,
            health_checks,
            locations: LocationTree::new(nested),
            settings: settings_of(own.pass.as_deref(), own.settings),
            pass: own.pass,
        })
    }

    fn finish_health_checks(&self, drafts: Vec<HealthCheckDraft>) -> Applied<Vec<HealthCheck>> {
        let has_group = self
            .pass
            .as_ref()
            .is_some_and(|pass| matches!(pass.target, PassTarget::Group(_)));
        let finished = drafts.into_iter().map(|draft| {
            let mut check = draft.check;
            if !has_group {
                let message = "\"health_check\" requires a directive such as \"proxy_pass\" without variables";
                return Err(draft.origin.error(message));
            }
            let is_grpc = self.pass.as_ref().is_some_and(|pass| pass.is_grpc);
            if check.kind == HealthCheckKind::Grpc && !is_grpc {
                let message = "\"health_check type=grpc\" requires \"grpc_pass\"";
                return Err(draft.origin.error(message));
            }
            if let Some(name) = draft.matching {
                let found = self.matches.iter().find(|known| known.name == name);
                check.matching = Some(found.cloned().ok_or_else(|| {
                    let message = format!("match \"{}\" is not found", name.display());
                    draft.origin.error(message)
                })?);
            }
            if check.method == "HEAD" && check.matching.iter().any(|found| found.tests_content()) {
                let message = "the answer to HEAD has no content, which \"match\" tests";
                let mut error = draft.origin.error(message);
                error.help = Some(String::from("test its status and fields, or use GET"));
                return Err(error);
            }
            Ok(check)
        });
        finished.collect()
    }

    /// An `if` or a `limit_except`: unless it has a handler of its own, it has that of the location.
    fn finish_condition(&self, draft: LocationDraft) -> Applied<Location> {
        let has_handler =
            draft.pass.is_some() || draft.api.is_some() || draft.stub_status || draft.metrics;
        let mut location = self.finish_location(draft)?;
        if !has_handler {
            location.pass = self.pass.clone();
            location.settings = settings_of(self.pass.as_deref(), location.settings);
            location.api = self.api;
            location.stub_status = self.stub_status;
            location.metrics = self.metrics;
        }
        Ok(location)
    }

    fn finish_steps(&self, steps: Vec<Step>) -> Applied<Vec<Instruction>> {
        let finished = steps.into_iter().map(|step| match step {
            Step::Ready(instruction) => Ok(instruction),
            Step::If {
                condition,
                mut level,
                in_server,
            } => {
                let inner = std::mem::take(&mut level.steps);
                let body = self.finish_steps(inner)?;
                let location = if in_server {
                    None
                } else {
                    Some(Arc::new(self.finish_condition(*level)?))
                };
                Ok(Instruction::If {
                    condition,
                    body,
                    location,
                })
            }
        });
        finished.collect()
    }
}

/// `$server_name`: the first name, a leading dot removed; a regular expression as written.
fn first_name(draft: &ServerDraft) -> Text {
    match draft.names.first() {
        None => Text::default(),
        Some(ServerName::Domain(name)) => name.clone(),
        Some(_) => draft.name_texts.first().cloned().unwrap_or_default(),
    }
}

/// The settings of a location with this handler.
fn settings_of(pass: Option<&Pass>, mut settings: Settings) -> Settings {
    if pass.is_some_and(|pass| pass.is_grpc) {
        grpc::apply(&mut settings);
    }
    if pass.is_some_and(|pass| pass.protocol == PassProtocol::Uwsgi) {
        settings.proxy_tls = settings.uwsgi_tls.clone();
    }
    settings
}
