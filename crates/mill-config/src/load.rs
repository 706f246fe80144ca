//! The entry point: a source and options in, a configuration or an error out.

use crate::Text;
use crate::config::Config;
use crate::diagnostic::Diagnostic;
use crate::resolve::{Resolver, join};
use crate::source::Source;

/// Settings of the command line and the build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Paths.
    pub paths: Paths,
    /// The text of `-g`: directives of the main context, parsed before the file.
    pub globals: Vec<u8>,
    /// Name of this machine, for `server_name $hostname` and the empty `server_name`.
    pub hostname: Vec<u8>,
    /// Whether the process runs with super-user privileges: without them `user` gets a warning.
    pub is_privileged: bool,
    /// The file is in Tempesta FW's language; else the file itself decides ([`crate::tempesta::sign`]).
    pub is_tempesta: bool,
}

/// Default paths, in nginx those of its build: relative ones are joined to the prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// `-p`: an absolute path that ends in a slash.
    pub prefix: Vec<u8>,
    /// `-c`.
    pub conf: Vec<u8>,
    /// The pid file.
    pub pid: Vec<u8>,
    /// The lock file.
    pub lock: Vec<u8>,
    /// The error log, or `stderr` (also `-e`).
    pub error_log: Vec<u8>,
    /// The access log.
    pub access_log: Vec<u8>,
    /// Directory for contents of requests.
    pub client_body_temp: Vec<u8>,
    /// Directory for answers of HTTP servers.
    pub proxy_temp: Vec<u8>,
    /// Directory for answers of FastCGI servers.
    pub fastcgi_temp: Vec<u8>,
    /// Directory for answers of uwsgi servers.
    pub uwsgi_temp: Vec<u8>,
    /// Directory for answers of SCGI servers.
    pub scgi_temp: Vec<u8>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            paths: Paths::default(),
            globals: Vec::new(),
            hostname: b"localhost".to_vec(),
            is_privileged: true,
            is_tempesta: false,
        }
    }
}

impl Default for Paths {
    /// Those of Debian's nginx.
    fn default() -> Self {
        Self {
            prefix: b"/usr/share/nginx/".to_vec(),
            conf: b"/etc/nginx/nginx.conf".to_vec(),
            pid: b"/run/nginx.pid".to_vec(),
            lock: b"/var/lock/nginx.lock".to_vec(),
            error_log: b"/var/log/nginx/error.log".to_vec(),
            access_log: b"/var/log/nginx/access.log".to_vec(),
            client_body_temp: b"/var/lib/nginx/body".to_vec(),
            proxy_temp: b"/var/lib/nginx/proxy".to_vec(),
            fastcgi_temp: b"/var/lib/nginx/fastcgi".to_vec(),
            uwsgi_temp: b"/var/lib/nginx/uwsgi".to_vec(),
            scgi_temp: b"/var/lib/nginx/scgi".to_vec(),
        }
    }
}

impl Options {
    /// The configuration file, absolute.
    pub fn conf_file(&self) -> Text {
        join(&self.paths.prefix, &self.paths.conf)
    }

    /// The directory of the configuration file with a slash at its end: `include` is relative to it.
    pub fn conf_prefix(&self) -> Text {
        let file = self.conf_file();
        let len = file
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |at| at + 1);
        Text::from(file.get(..len).unwrap_or_default())
    }
}

/// A configuration, with warnings and notices.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Warnings and notices, in the order of the text.
    pub remarks: Vec<Diagnostic>,
}

/// Why there is no configuration.
#[derive(Debug)]
pub struct Failure {
    /// The first error.
    pub error: Diagnostic,
    /// Warnings and notices before it.
    pub remarks: Vec<Diagnostic>,
}

/// Reads, checks and resolves a configuration.
pub fn load(source: &dyn Source, options: &Options) -> Result<Loaded, Box<Failure>> {
    let (mut result, mut remarks, shadows) = Resolver::new(source, options, &[]).run();
    if result.is_ok() && !shadows.is_empty() {
        // A name such as $http_x was used as built-in before `set` or `map` defined it.
        (result, remarks, _) = Resolver::new(source, options, &shadows).run();
    }
    match result {
        Ok(config) => Ok(Loaded { config, remarks }),
        Err(error) => Err(Box::new(Failure {
            error: *error,
            remarks,
        })),
    }
}
