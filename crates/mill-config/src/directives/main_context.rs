//! Directives of the main context: processes, user, files of the master.

use std::time::Duration;

use crate::Text;
use crate::config::{
    CpuAffinity, CpuMask, EnvironmentVariable, LogLevel, ThreadPool, User, WorkerCount,
};
use crate::directive::{Apply, Arity, Contexts, Directive, MAIN, Notice, Value, many, once};
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver, join, spot};
use crate::value;

const ANYWHERE: Contexts = Contexts(u16::MAX);

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "include",
        ANYWHERE,
        Arity::Exactly(1),
        Apply::With(include),
        "Reads another file in this place, or all files that match a pattern, in the order of their names.",
    ),
    many(
        "load_module",
        MAIN,
        Arity::Exactly(1),
        Apply::With(load_module),
        "Names a module of nginx: accepted for those that exist, nothing is loaded.",
    ),
    once(
        "user",
        MAIN,
        Arity::Between(1, 2),
        "",
        Apply::With(user),
        "Account, and group, of the worker process.",
    ),
    once(
        "worker_processes",
        MAIN,
        Arity::Exactly(1),
        "1",
        Apply::With(worker_processes),
        "Number of workers (threads of the worker process), or auto: one per CPU.",
    ),
    once(
        "worker_cpu_affinity",
        MAIN,
        Arity::AtLeast(1),
        "",
        Apply::With(worker_cpu_affinity),
        "CPUs of each worker as binary masks, or auto.",
    ),
    once(
        "worker_rlimit_nofile",
        MAIN,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| {
            r.main.worker_rlimit_nofile = Some(r.number(s)?);
            Ok(())
        }),
        "Limit of open descriptors of the worker process.",
    ),
    once(
        "worker_rlimit_core",
        MAIN,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| {
            r.main.worker_rlimit_core = Some(r.read(s, value::offset)?);
            Ok(())
        }),
        "Largest core file of the worker process.",
    ),
    once(
        "worker_priority",
        MAIN,
        Arity::Exactly(1),
        "0",
        Apply::With(worker_priority),
        "Nice value of the worker process.",
    ),
    once(
        "worker_shutdown_timeout",
        MAIN,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| {
            r.main.worker_shutdown_timeout = Some(r.read(s, value::milliseconds)?);
            Ok(())
        }),
        "Longest graceful shutdown; then connections are closed.",
    ),
    once(
        "working_directory",
        MAIN,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| {
            r.main.working_directory = Some(Text::from(s.arg(1).bytes.as_slice()));
            Ok(())
        }),
        "Current directory of the worker process.",
    ),
    once(
        "pid",
        MAIN,
        Arity::Exactly(1),
        "logs/nginx.pid",
        Apply::With(|r, s| {
            r.main.pid = Some(r.full_name(&s.arg(1).bytes));
            Ok(())
        }),
        "File with the process id of the master.",
    ),
    once(
        "lock_file",
        MAIN,
        Arity::Exactly(1),
        "logs/nginx.lock",
        Apply::With(lock_file),
        "Prefix of lock files.",
    )
    .unread(
        "workers have listeners of their own or share one; none takes a lock",
        Notice::Given,
    ),
    once(
        "daemon",
        MAIN,
        Arity::Exactly(1),
        "on",
        Apply::With(|r, s| {
            r.main.daemon = Some(r.flag(s)?);
            Ok(())
        }),
        "Go to the background.",
    ),
    once(
        "master_process",
        MAIN,
        Arity::Exactly(1),
        "on",
        Apply::With(|r, s| {
            r.main.master_process = Some(r.flag(s)?);
            Ok(())
        }),
        "Run a worker process besides the master.",
    ),
    once(
        "timer_resolution",
        MAIN,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| {
            r.main.timer_resolution =
                Some(r.read(s, value::milliseconds)?).filter(|&time| time > Duration::ZERO);
            Ok(())
        }),
        "Read the clock only so often.",
    )
    .unread(
        "the clock is read once a turn, by no system call",
        Notice::Given,
    ),
    many(
        "env",
        MAIN,
        Arity::Exactly(1),
        Apply::With(env),
        "Keeps or sets a variable of the environment.",
    ),
    once(
        "pcre_jit",
        MAIN,
        Arity::Exactly(1),
        "off",
        Apply::WithoutEffect(
            Value::Flag,
            "regular expressions are always compiled; this changes no match",
        ),
        "Just-in-time compilation of regular expressions.",
    ),
    once(
        "debug_points",
        MAIN,
        Arity::Exactly(1),
        "",
        Apply::With(debug_points),
        "What an internal error does: stop or abort.",
    )
    .unread("it is for debugging nginx itself", Notice::Given),
    many(
        "thread_pool",
        MAIN,
        Arity::Between(2, 3),
        Apply::With(thread_pool),
        "Threads of each worker that open and read files that are not in memory, and how many requests may wait for one. All files go by the pool `default`.",
    ),
];

fn include(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    include_from(resolver, statement, statement.arg(1))
}

/// Also called for `include` among the entries of `types` and `map`.
pub(crate) fn include_from(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
) -> Applied {
    let path = join(&resolver.options.conf_prefix(), &word.bytes);
    if !path.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
        return resolver.file(&path, Some(statement));
    }
    let found = resolver.source.glob(&path).map_err(|error| {
        let shown = path.display();
        let message = format!("glob() \"{shown}\" failed ({}: {})", error.code, error.text);
        resolver.emerg(statement, word, message)
    })?;
    found
        .iter()
        .try_for_each(|path| resolver.file(path, Some(statement)))
}

/// Modules that nginx and Debian ship, by the stem of their file, and their directives that are missing here. Those
/// whose directives are missing fail at the directive, which is where it matters.
const MODULES: &[(&str, &str)] = &[
    ("ndk_http_module", NOTHING),
    ("ngx_http_auth_pam_module", NOTHING),
    ("ngx_http_brotli_filter_module", "\"gzip\" is here instead"),
    (
        "ngx_http_brotli_static_module",
        "\"gzip_static\" is here instead",
    ),
    ("ngx_http_cache_purge_module", NOTHING),
    ("ngx_http_dav_ext_module", NOTHING),
    ("ngx_http_echo_module", "\"return\" answers with a text"),
    (
        "ngx_http_fancyindex_module",
        "\"autoindex\" is here instead",
    ),
    ("ngx_http_geoip2_module", NOTHING),
    ("ngx_http_geoip_module", NOTHING),
    (
        "ngx_http_headers_more_filter_module",
        "\"add_header\" adds fields; nothing removes any",
    ),
    ("ngx_http_image_filter_module", NOTHING),
    ("ngx_http_js_module", NOTHING),
    ("ngx_http_lua_module", NOTHING),
    ("ngx_http_perl_module", NOTHING),
    ("ngx_http_subs_filter_module", NOTHING),
    ("ngx_http_uploadprogress_module", NOTHING),
    ("ngx_http_upstream_fair_module", NOTHING),
    ("ngx_http_xslt_filter_module", NOTHING),
    ("ngx_mail_module", NOTHING),
    ("ngx_nchan_module", NOTHING),
    ("ngx_rtmp_module", NOTHING),
    ("ngx_stream_geoip2_module", NOTHING),
    ("ngx_stream_geoip_module", NOTHING),
    ("ngx_stream_js_module", NOTHING),
    ("ngx_stream_module", BUILT_IN),
];

const NOTHING: &str = "none of its directives is here yet";
const BUILT_IN: &str = "nearly everything is built in";

fn load_module(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let path = resolver.full_name(&word.bytes);
    let missing = resolver
        .source
        .glob(&path)
        .is_ok_and(|found| found.is_empty());
    let missing = if missing {
        format!(", and there is no file \"{}\"", path.display())
    } else {
        String::new()
    };
    let file = word
        .bytes
        .rsplit(|&byte| byte == b'/')
        .next()
        .unwrap_or_default();
    let stem = file.strip_suffix(b".so").unwrap_or(file);
    let known = MODULES.iter().find(|(known, _)| known.as_bytes() == stem);
    let Some((name, instead)) = known else {
        let message = format!(
            "module \"{}\" is unknown to Millstream{missing}",
            word.display()
        );
        let mut error = resolver.emerg(statement, word, message);
        error.help = Some(String::from(
            "modules are not loaded; only the names of nginx's and Debian's are accepted",
        ));
        return Err(error);
    };
    if resolver.main.modules.contains(&path) {
        let message = format!("module \"{name}\" is already loaded");
        return Err(resolver.emerg(statement, word, message));
    }
    resolver.main.modules.push(path);
    // nginx would not start without the file; this server starts with a warning.
    let level = if missing.is_empty() {
        LogLevel::Notice
    } else {
        LogLevel::Warn
    };
    let message = format!("module \"{name}\" is not loaded{missing}");
    let mut remark = *resolver.diagnostic(level, statement, word, message);
    remark.help = Some(format!(
        "Millstream loads no modules, of this one {instead}; its directives are refused where they stand"
    ));
    resolver.remarks.push(remark);
    Ok(())
}

fn user(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if !resolver.options.is_privileged {
        let message = "the \"user\" directive makes sense only if the master process runs with \
                       super-user privileges, ignored";
        resolver.warn(statement, statement.name(), message);
        return Ok(());
    }
    let group = statement.args().get(1);
    let name = statement.arg(1);
    resolver.main.user = Some(User {
        name: Text::from(name.bytes.as_slice()),
        group: group.map(|word| Text::from(word.bytes.as_slice())),
        name_spot: spot(statement, name),
        group_spot: spot(statement, group.unwrap_or(name)),
    });
    Ok(())
}

/// More threads are probably a mistake; each costs memory at start.
const WORKERS_MAX: u64 = 4096;

fn worker_processes(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let count = match word.bytes.as_slice() {
        b"auto" => WorkerCount::Auto,
        text => {
            let count = value::number(text)
                .filter(|count| (1..=WORKERS_MAX).contains(count))
                .and_then(|count| u32::try_from(count).ok());
            let count =
                count.ok_or_else(|| resolver.refused_at(statement, word, "invalid value"))?;
            WorkerCount::Count(count)
        }
    };
    resolver.main.worker_processes = Some(count);
    Ok(())
}

fn worker_cpu_affinity(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let args = statement.args();
    let affinity = match args {
        [auto] if auto.bytes == b"auto" => CpuAffinity::Auto { mask: None },
        [auto, mask] if auto.bytes == b"auto" => CpuAffinity::Auto {
            mask: Some(cpu_mask(resolver, statement, mask)?),
        },
        [auto, ..] if auto.bytes == b"auto" => {
            let message = "invalid number of arguments in \"worker_cpu_affinity\" directive";
            return Err(resolver.emerg(statement, statement.name(), message));
        }
        masks => {
            let masks = masks.iter().map(|word| cpu_mask(resolver, statement, word));
            CpuAffinity::Masks(masks.collect::<Applied<_>>()?)
        }
    };
    resolver.main.worker_cpu_affinity = Some(affinity);
    Ok(())
}

/// CPUs in a mask: Linux's CPU_SETSIZE.
const CPUS_MAX: usize = 1024;

fn cpu_mask(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Applied<CpuMask> {
    if word.bytes.len() > CPUS_MAX {
        let message = format!("\"worker_cpu_affinity\" supports up to {CPUS_MAX} CPUs only");
        return Err(resolver.emerg(statement, word, message));
    }
    let mut cpus = Vec::new();
    for (cpu, byte) in (0_u16..).zip(word.bytes.iter().rev().filter(|&&byte| byte != b' ')) {
        match byte {
            b'0' => {}
            b'1' => cpus.push(cpu),
            other => {
                let other = String::from_utf8_lossy(std::slice::from_ref(other)).into_owned();
                let message = format!("invalid character \"{other}\" in \"worker_cpu_affinity\"");
                return Err(resolver.emerg(statement, word, message));
            }
        }
    }
    Ok(CpuMask { cpus })
}

fn worker_priority(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let (sign, digits) = match word.bytes.as_slice() {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let value = value::number(digits).and_then(|value| i32::try_from(value).ok());
    let value = value.ok_or_else(|| resolver.refused_at(statement, word, "invalid number"))?;
    resolver.main.worker_priority = Some(sign * value);
    Ok(())
}

fn debug_points(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    resolver.choice(statement, statement.arg(1), &[("stop", ()), ("abort", ())])?;
    Ok(())
}

/// One of the pools that nginx's `aio threads=NAME` chooses from. Here a worker has one, `default`.
fn thread_pool(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let name = statement.arg(1);
    let mut threads = None;
    let mut max_queue = ThreadPool::default().max_queue;
    for word in statement.args().iter().skip(1) {
        let text = word.bytes.as_slice();
        if let Some(digits) = text.strip_prefix(b"threads=") {
            let count = decimal(digits).filter(|count| *count > 0);
            let message = format!("invalid threads value \"{}\"", word.display());
            threads = Some(count.ok_or_else(|| resolver.emerg(statement, word, message))?);
        } else if let Some(digits) = text.strip_prefix(b"max_queue=") {
            let message = format!("invalid max_queue value \"{}\"", word.display());
            max_queue = decimal(digits).ok_or_else(|| resolver.emerg(statement, word, message))?;
        } else {
            let message = format!("parameter \"{}\" has no effect", word.display());
            resolver.warn(statement, word, message);
        }
    }
    let Some(threads) = threads else {
        let message = "\"thread_pool\" must have \"threads\" parameter";
        return Err(resolver.emerg(statement, name, message));
    };
    let pool = ThreadPool { threads, max_queue };
    let pools = &mut resolver.main.thread_pools;
    if pools
        .insert(Text::from(name.bytes.as_slice()), pool)
        .is_some()
    {
        let message = format!("duplicate thread pool \"{}\"", name.display());
        return Err(resolver.emerg(statement, name, message));
    }
    if name.bytes != b"default" {
        let message = format!("thread pool \"{}\" has no effect", name.display());
        let help = "all files go by the pool \"default\"";
        resolver.notice(statement, name, message, help);
    }
    Ok(())
}

fn decimal(digits: &[u8]) -> Option<u32> {
    str::from_utf8(digits).ok()?.parse().ok()
}

fn lock_file(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    resolver.main.lock_file = Some(resolver.full_name(&statement.arg(1).bytes));
    Ok(())
}

fn env(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let text = &statement.arg(1).bytes;
    let mut halves = text.splitn(2, |&byte| byte == b'=');
    let name = Text::from(halves.next().unwrap_or_default());
    let value = halves.next().map(Text::from);
    resolver.main.env.push(EnvironmentVariable { name, value });
    Ok(())
}
