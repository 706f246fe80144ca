//! `fastcgi_pass`, `uwsgi_pass`, `scgi_pass`, `memcached_pass`.

use mill_config::config::settings::PassParam;
use mill_config::config::{PassProtocol, PassTarget, Template, Variable};
use mill_config::{Memory, Options, Text, load};

use crate::proxy::{PATH, addresses, config, group, http, located, location, pass, refused};

#[test]
fn each_protocol_has_its_target() {
    let check = |directive: &str, protocol: PassProtocol, address: &str| {
        let location = located(directive);
        let pass = pass(&location);
        assert_eq!(pass.protocol, protocol, "{directive}");
        assert_eq!(addresses(group(pass)), [address], "{directive}");
        assert_eq!((&pass.uri, pass.replaced), (&None, 0), "{directive}");
    };
    check(
        "fastcgi_pass localhost:9000;",
        PassProtocol::Fastcgi,
        "127.0.0.1:9000",
    );
    check(
        "fastcgi_pass unix:/run/php/php-fpm.sock;",
        PassProtocol::Fastcgi,
        "unix:/run/php/php-fpm.sock",
    );
    check("uwsgi_pass [::1]:1;", PassProtocol::Uwsgi, "[::1]:1");
    check(
        "uwsgi_pass uwsgi://127.0.0.1:1;",
        PassProtocol::Uwsgi,
        "127.0.0.1:1",
    );
    check("scgi_pass 127.0.0.1:1;", PassProtocol::Scgi, "127.0.0.1:1");
    let config = config(
        "server { location / { set $memcached_key $uri; memcached_pass 127.0.0.1:11211; } \
         location /f { fastcgi_pass $arg_a; } }",
    );
    let memcached = location(&config, "/");
    let key = http(&config).user_variables.iter();
    let key = key
        .map(|variable| &variable.name)
        .position(|name| *name == "memcached_key");
    assert_eq!(
        pass(&memcached).memcached_key,
        Some(Variable::User(key.expect("it is defined")))
    );
    let evaluated = location(&config, "/f");
    assert!(matches!(pass(&evaluated).target, PassTarget::Evaluated(_)));
}

#[test]
fn each_protocol_has_its_settings() {
    let config = config(
        "server { location / { fastcgi_param A a; fastcgi_param B $arg_b if_not_empty; fastcgi_index i.php; \
         fastcgi_split_path_info ^(.+\\.php)(/.+)$; fastcgi_catch_stderr \"PHP Fatal\"; fastcgi_keep_conn on; \
         uwsgi_modifier1 5; uwsgi_modifier2 255; uwsgi_string s; uwsgi_param A a; scgi_param A a; \
         memcached_gzip_flag 2; } }",
    );
    let location = location(&config, "/");
    let fastcgi = &location.fastcgi_params;
    let param = PassParam {
        name: Text::from("A"),
        value: Template::literal("a"),
        if_not_empty: false,
    };
    assert_eq!(fastcgi.params[0], param);
    assert!(fastcgi.params[1].if_not_empty);
    assert_eq!(fastcgi.index, "i.php");
    let split = fastcgi.split_path_info.as_ref().expect("it is written");
    assert!(split.is_match(b"/a.php/b"));
    assert_eq!(fastcgi.catch_stderr, [Text::from("PHP Fatal")]);
    assert!(fastcgi.keep_conn);
    let uwsgi = &location.uwsgi_params;
    assert_eq!((uwsgi.modifier1, uwsgi.modifier2), (5, 255));
    assert_eq!(
        (&uwsgi.string, &uwsgi.params[0]),
        (&Text::from("s"), &param)
    );
    assert_eq!(location.scgi_params.params, [param]);
    assert_eq!(location.memcached_content.gzip_flag, 2);
}

#[test]
fn faults_of_the_protocols_are_told_in_the_words_of_nginx() {
    let check = |directives: &str, expected: &str| {
        let line = refused(&format!("server {{ location / {{ {directives} }} }}"));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{directives}"
        );
    };
    check("fastcgi_pass a;", "no port in upstream \"a\"");
    check(
        "memcached_pass 127.0.0.1;",
        "no port in upstream \"127.0.0.1\"",
    );
    check("scgi_pass a:1/b;", "invalid host in upstream \"a:1/b\"");
    check(
        "fastcgi_pass nosuch.invalid:1;",
        "host not found in upstream \"nosuch.invalid\"",
    );
    check("fastcgi_param A b c;", "invalid parameter \"c\"");
    check(
        "fastcgi_param A;",
        "invalid number of arguments in \"fastcgi_param\" directive",
    );
    check(
        "fastcgi_split_path_info (a);",
        "pattern \"(a)\" must have 2 captures",
    );
    check("uwsgi_modifier1 256;", "value must be between 0 and 255");
    check(
        "limit_except GET { fastcgi_pass 127.0.0.1:1; }",
        "\"fastcgi_pass\" directive is not allowed here",
    );
    check(
        "memcached_pass 127.0.0.1:1;",
        "unknown \"memcached_key\" variable",
    );
}

#[test]
fn the_parameter_files_of_debian_load() {
    let text = "events {} http { server { \
                location / { include proxy_params; proxy_pass http://127.0.0.1; } \
                location ~ \\.php$ { include snippets/fastcgi-php.conf; fastcgi_pass unix:/run/php/php-fpm.sock; } \
                location /f { include fastcgi_params; fastcgi_pass 127.0.0.1:9000; } \
                location /u { include uwsgi_params; uwsgi_pass 127.0.0.1:1; } \
                location /s { include scgi_params; scgi_pass 127.0.0.1:1; } } }";
    let source = Memory::new()
        .with(PATH, text)
        .with(
            "/etc/nginx/proxy_params",
            include_str!("../seeds/proxy_params"),
        )
        .with(
            "/etc/nginx/fastcgi_params",
            include_str!("../seeds/fastcgi_params"),
        )
        .with(
            "/etc/nginx/fastcgi.conf",
            include_str!("../seeds/fastcgi.conf"),
        )
        .with(
            "/etc/nginx/uwsgi_params",
            include_str!("../seeds/uwsgi_params"),
        )
        .with(
            "/etc/nginx/scgi_params",
            include_str!("../seeds/scgi_params"),
        )
        .with(
            "/etc/nginx/snippets/fastcgi-php.conf",
            include_str!("../seeds/fastcgi-php.conf"),
        );
    let loaded = match load(&source, &Options::default()) {
        Ok(loaded) => loaded,
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    };
    assert!(loaded.remarks.is_empty(), "{:?}", loaded.remarks);
    let find = |path| location(&loaded.config, path);
    assert_eq!(find("/").proxy_http.set_header.len(), 4);
    let php = find("/a.php").fastcgi_params.clone();
    assert_eq!(php.index, "index.php");
    assert!(php.split_path_info.is_some());
    let names = |params: &[PassParam]| -> Vec<String> {
        let names = params.iter().map(|param| &param.name);
        names.map(|name| name.display().into_owned()).collect()
    };
    assert!(names(&php.params).contains(&String::from("SCRIPT_FILENAME")));
    let https = find("/f")
        .fastcgi_params
        .params
        .iter()
        .find_map(|param| (param.name == "HTTPS").then_some(param.if_not_empty));
    assert_eq!(https, Some(true));
    assert!(names(&find("/u").uwsgi_params.params).contains(&String::from("PATH_INFO")));
    assert!(names(&find("/s").scgi_params.params).contains(&String::from("REQUEST_METHOD")));
}
