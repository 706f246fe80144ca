//! The configurations of the published experiments, and Debian's own, load as they are.

use std::net::SocketAddr;
use std::time::Duration;

use mill_config::config::settings::{HttpVersion, MimeSet, OpenFileCache};
use mill_config::config::{
    Config, CpuAffinity, CpuMask, ErrorLogTarget, Http, ListenAddress, LogLevel, Server,
    TryFallback, Variable, WorkerCount,
};
use mill_config::{Loaded, Memory, Options, Text, load};

const MIME_TYPES: &str = include_str!("seeds/mime.types");

fn loaded(conf: &str) -> Loaded {
    let source = Memory::new()
        .with("/etc/nginx/nginx.conf", conf)
        .with("/etc/nginx/mime.types", MIME_TYPES)
        .with(
            "/etc/nginx/modules-enabled/50-mod-http-image-filter.conf",
            "load_module modules/ngx_http_image_filter_module.so;\n",
        )
        .with(
            "/usr/share/nginx/modules/ngx_http_image_filter_module.so",
            "ELF",
        )
        .with(
            "/etc/nginx/sites-enabled/default",
            include_str!("seeds/debian_site.conf"),
        );
    match load(&source, &Options::default()) {
        Ok(loaded) => loaded,
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    }
}

fn http(config: &Config) -> &Http {
    config
        .http
        .as_ref()
        .expect("the configuration has an http block")
}

fn only_server(config: &Config) -> &Server {
    assert_eq!(http(config).servers.len(), 1);
    &http(config).servers[0]
}

#[test]
fn seed_000_loads_with_its_values() {
    let loaded = loaded(include_str!("seeds/000.conf"));
    let main = &loaded.config.main;
    let user = main.user.as_ref().map(|user| (&user.name, &user.group));
    assert_eq!(user, Some((&Text::from("www-data"), &None)));
    assert_eq!(main.worker_processes, WorkerCount::Auto);
    assert_eq!(
        main.worker_cpu_affinity,
        Some(CpuAffinity::Auto { mask: None })
    );
    assert_eq!(main.worker_rlimit_nofile, Some(1_000_000));
    assert_eq!(main.pid, "/run/nginx.pid");
    assert_eq!(loaded.config.events.worker_connections, 65536);
    assert!(loaded.config.events.multi_accept);

    let listener = &http(&loaded.config).listeners[0];
    let address: SocketAddr = "0.0.0.0:9090".parse().unwrap();
    assert_eq!(listener.address, ListenAddress::Inet(address));
    assert_eq!(listener.options.backlog, 131_072);
    assert_eq!(listener.options.fastopen, Some(4096));
    assert!(listener.options.deferred && listener.options.reuseport && listener.options.bind);

    let server = only_server(&loaded.config);
    let location = server
        .locations
        .find(b"/index.html", &mut Vec::new())
        .unwrap();
    assert_eq!(
        location.connection.keepalive_timeout,
        Duration::from_secs(600)
    );
    assert_eq!(location.connection.keepalive_requests, 10_000_000);
    assert!(
        location.files.sendfile
            && location.connection.tcp_nopush
            && location.connection.tcp_nodelay
    );
    let cache = OpenFileCache {
        max: 1000,
        inactive: Duration::from_secs(3600),
    };
    assert_eq!(location.open_file.cache, Some(cache));
    assert_eq!(location.open_file.valid, Duration::from_secs(3600));
    assert_eq!(location.open_file.min_uses, 2);
    assert!(location.log.access_logs.is_empty());
    let log = &location.log.error_logs[0];
    assert_eq!(log.target, ErrorLogTarget::File(Text::from("/dev/null")));
    assert_eq!(log.level, LogLevel::Emerg);
    assert!(format!("{:?}", location.files.document).contains("/var/www/html"));
    // One notice for the module, none for anything else.
    assert_eq!(loaded.remarks.len(), 1, "{:?}", loaded.remarks);
    assert_eq!(loaded.remarks[0].level, LogLevel::Notice);
}

#[test]
fn seed_001_loads_with_every_number_of_workers() {
    for workers in 1_u16..=28 {
        let masks: Vec<String> = (1..=workers)
            .map(|worker| format!("01{}", "0".repeat((worker - 1).into())))
            .collect();
        let text = include_str!("seeds/001.conf")
            .replace("@WORKERS@", &workers.to_string())
            .replace("@MASKS@", &masks.join(" "));
        let loaded = loaded(&text);
        let main = &loaded.config.main;
        assert_eq!(main.worker_processes, WorkerCount::Count(workers.into()));
        let masks = (0..workers)
            .map(|cpu| CpuMask { cpus: vec![cpu] })
            .collect();
        assert_eq!(main.worker_cpu_affinity, Some(CpuAffinity::Masks(masks)));
        assert_eq!(main.worker_rlimit_nofile, Some(8_388_608));
        assert_eq!(main.pid, format!("/var/run/nginx_{workers}.pid").as_str());
        assert_eq!(loaded.config.events.worker_connections, 200_000);
        let location = &only_server(&loaded.config).location;
        assert_eq!(location.mime.types.find(b"SVG").unwrap(), &"image/svg+xml");
        assert_eq!(location.mime.default_type, "application/octet-stream");
        assert_eq!(location.open_file.valid, Duration::from_secs(30));
        let format = &http(&loaded.config).log_formats[1];
        assert_eq!(format.name, "main");
        let cipher = mill_config::config::Part::Variable(Variable::SslCipher);
        assert!(format.template.parts().contains(&cipher));
    }
}

#[test]
fn seed_002_loads_as_its_text_describes() {
    let loaded = loaded(include_str!("seeds/002.conf"));
    assert_eq!(loaded.config.main.worker_processes, WorkerCount::Count(32));
    assert!(http(&loaded.config).listeners[0].options.reuseport);
}

#[test]
fn seed_004_loads_with_its_compression() {
    let loaded = loaded(include_str!("seeds/004.conf"));
    let server = only_server(&loaded.config);
    assert_eq!(server.location.client_header.buffer_size, 2048);
    assert_eq!(server.location.client_header.large_buffer_size, 4096);
    let location = server
        .locations
        .find(b"/50x.html", &mut Vec::new())
        .unwrap();
    assert!(location.gzip.enabled && location.gzip.vary);
    assert_eq!(location.gzip.comp_level, 4);
    assert_eq!(location.gzip.min_length, 1024);
    assert_eq!(location.gzip.http_version, HttpVersion::Http11);
    assert!(location.gzip.types.contains(b"image/svg+xml"));
    assert!(location.gzip.types.contains(b"text/html"));
    assert!(!location.gzip.types.contains(b"image/png"));
    assert_ne!(location.gzip.types, MimeSet::Any);
    let proxied = location.gzip.proxied;
    assert!(proxied.expired && proxied.no_cache && proxied.no_store && proxied.private);
    assert!(proxied.auth && !proxied.any && !proxied.no_etag);
    assert_eq!(location.client_body.max_size, 8 << 20);
    let statuses: Vec<u16> = location
        .error_page
        .pages
        .iter()
        .map(|page| page.status)
        .collect();
    assert_eq!(statuses, [500, 502, 503, 504]);
    let names: Vec<_> = loaded
        .remarks
        .iter()
        .map(|remark| remark.message.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "\"server_names_hash_bucket_size\" directive has no effect",
            "\"gzip_buffers\" directive has no effect",
        ]
    );
}

#[test]
fn debians_own_configuration_loads_with_its_site() {
    let loaded = loaded(include_str!("seeds/debian.conf"));
    let listeners = &http(&loaded.config).listeners;
    let addresses: Vec<_> = listeners
        .iter()
        .map(|one| one.address.to_string())
        .collect();
    assert_eq!(addresses, ["0.0.0.0:80", "[::]:80"]);
    let server = only_server(&loaded.config);
    assert_eq!(server.name, "_");
    let location = server.locations.find(b"/a", &mut Vec::new()).unwrap();
    let tried = location.try_files.as_ref().unwrap();
    let directories: Vec<bool> = tried.candidates.iter().map(|one| one.directory).collect();
    assert_eq!(directories, [false, true]);
    assert!(matches!(tried.fallback, TryFallback::Status(404)));
    assert!(
        loaded
            .remarks
            .iter()
            .all(|remark| remark.level == LogLevel::Notice)
    );
}
