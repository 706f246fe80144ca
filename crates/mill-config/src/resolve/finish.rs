//! Inheritance: drafts become the [`Config`].

use std::sync::Arc;

use crate::Text;
use crate::config::location::{LimitExcept, LocationName};
use crate::config::log::{ErrorLog, ErrorLogTarget, LogPath};
use crate::config::settings::{ClientBodyTemp, Document, Settings, SettingsDraft};
use crate::config::{
    AccessLog, Config, Events, Http, Instruction, Location, LocationTree, LogLevel, Main, Server,
    ServerName, Template, WorkerCount,
};
use crate::diagnostic::{Diagnostic, SourcePosition};
use crate::directives::mime;
use crate::resolve::draft::{HttpDraft, LocationDraft, ServerDraft, Step};
use crate::resolve::{Applied, Resolver, join, recoding, templates};

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
    Ok(Config {
        main,
        events: Events { ..events },
        http,
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
    let outer = settings.inherit(&defaults(resolver, main));
    let mut drafts = std::mem::take(&mut http.servers);
    let mut servers = Vec::with_capacity(drafts.len());
    for draft in &mut drafts {
        servers.push(Arc::new(finish_server(draft, &outer)));
    }
    let listeners = resolver.listeners(&http.addresses, &drafts, &servers)?;
    let user_variables = resolver.variables.finish().map_err(|(name, origin)| {
        let message = format!("unknown \"{}\" variable", name.display());
        let mut error = Diagnostic::new(LogLevel::Emerg, message, SourcePosition::None);
        if let Some(origin) = origin {
            origin.show_in(&mut error);
        }
        error.help = templates::nearest_variable(&name);
        Box::new(error)
    })?;
    recoding::check(&servers)?;
    Ok(Http {
        listeners,
        servers,
        log_formats: http.log_formats,
        maps: http.maps,
        user_variables,
    })
}

/// Defaults, some of which depend on paths and on the main context.
fn defaults(resolver: &Resolver<'_>, main: &Main) -> Settings {
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
    draft.client_body.temp_path = Some(ClientBodyTemp {
        path: full(&paths.client_body_temp),
        levels: [0; 3],
    });
    draft.inherit(&Settings::default())
}

fn finish_server(draft: &mut ServerDraft, outer: &Settings) -> Server {
    let mut level = std::mem::take(&mut draft.level);
    let settings = std::mem::take(&mut level.settings).inherit(outer);
    let mut named = Vec::new();
    let mut others = Vec::new();
    for location in std::mem::take(&mut level.locations) {
        let location = Arc::new(finish_location(location, &settings));
        match &location.name {
            LocationName::Named(name) => named.push((name.clone(), location)),
            _ => others.push(location),
        }
    }
    named.sort_by(|(a, _), (b, _)| a.cmp(b));
    named.dedup_by(|(later, _), (first, _)| later == first);
    let location = Location {
        name: LocationName::Server,
        instructions: finish_steps(
            std::mem::take(&mut level.steps),
            &settings,
            (level.stub_status, level.metrics),
        )
        .into(),
        try_files: level.try_files.take(),
        limit_except: None,
        stub_status: level.stub_status,
        metrics: level.metrics,
        locations: LocationTree::default(),
        settings,
    };
    Server {
        index: draft.index,
        name: first_name(draft),
        names: draft.names.clone(),
        location: Arc::new(location),
        locations: LocationTree::new(others),
        named_locations: named,
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

fn finish_location(mut draft: LocationDraft, outer: &Settings) -> Location {
    let settings = std::mem::take(&mut draft.settings).inherit(outer);
    let nested = std::mem::take(&mut draft.locations);
    let nested: Vec<_> = nested
        .into_iter()
        .map(|nested| Arc::new(finish_location(nested, &settings)))
        .collect();
    let limit_except = draft
        .limit_except
        .take()
        .map(|(methods, inner)| LimitExcept {
            methods,
            location: Arc::new(finish_location(*inner, &settings)),
        });
    Location {
        name: draft.name.unwrap_or(LocationName::Condition),
        instructions: finish_steps(draft.steps, &settings, (draft.stub_status, draft.metrics))
            .into(),
        try_files: draft.try_files,
        limit_except,
        stub_status: draft.stub_status,
        metrics: draft.metrics,
        locations: LocationTree::new(nested),
        settings,
    }
}

/// `stub_status` and `millstream_metrics` are those of the enclosing location: as in nginx, an `if` changes settings,
/// not the handler.
fn finish_steps(
    steps: Vec<Step>,
    outer: &Settings,
    (stub_status, metrics): (bool, bool),
) -> Vec<Instruction> {
    let finished = steps.into_iter().map(|step| match step {
        Step::Ready(instruction) => instruction,
        Step::If {
            condition,
            mut level,
            in_server,
        } => {
            let inner = std::mem::take(&mut level.steps);
            let body = finish_steps(inner, outer, (stub_status, metrics));
            level.stub_status |= stub_status;
            level.metrics |= metrics;
            let location = (!in_server).then(|| Arc::new(finish_location(*level, outer)));
            Instruction::If {
                condition,
                body,
                location,
            }
        }
    });
    finished.collect()
}
