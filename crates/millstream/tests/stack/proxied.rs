//! What the tests of proxies on a stack of our own share: the servers behind, the proxy's configuration, its clients.

use crate::namespace::output_of;
use crate::server::wait_for;

/// Serves files, and tells where a request came from. One at port 9112 is as good, and says that it is not.
pub(crate) const ORIGIN: &str = "server {
        listen 9111;
        location = /up { return 204; }
        location = /from { return 200 $remote_addr; }
    }
    server { listen 9112; location = /up { return 503; } location / { return 200 ill; } }";

/// A proxy at a port, with a location for each of these servers. Below `/probed/` a server gets requests only once
/// a probe has found it healthy.
pub(crate) fn proxy(port: u16, servers: [(&str, &str); 2]) -> String {
    let group =
        |(name, address)| format!("upstream {name} {{ server {address}:9111; keepalive 4; }}");
    let location = |(name, _)| format!("location /{name}/ {{ proxy_pass http://{name}/; }}");
    let [first, second] = servers.map(group);
    let [first_location, second_location] = servers.map(location);
    let (_, probed) = servers[0];
    format!(
        "{first} {second}
         upstream probed {{ zone probed 64k; server {probed}:9111; server {probed}:9112; }}
         server {{
             listen {port};
             proxy_http_version 1.1;
             proxy_set_header Connection '';
             {first_location} {second_location}
             location /probed/ {{
                 proxy_pass http://probed/;
                 health_check mandatory uri=/up;
             }}
         }}"
    )
}

/// What curl gets, from several URLs in one process and connection.
pub(crate) fn get(urls: &[String]) -> Vec<u8> {
    let urls = urls.iter().map(String::as_str);
    let words: Vec<&str> = ["-sSf", "-m", "30"].into_iter().chain(urls).collect();
    let output = output_of("curl", &words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    output.stdout
}

/// Has each client's URL of the proxy pass requests to each server, which sees them come from an address.
pub(crate) fn check_pairs(fronts: &[&str], servers: [(&str, &str); 2], large: &[u8]) {
    for front in fronts {
        for (name, from) in servers {
            let url = |file: &str| [format!("http://{front}/{name}/{file}")];
            assert_eq!(get(&url("from")), from.as_bytes(), "{front} {name}");
            assert!(get(&url("large.bin")) == large, "{front} {name}");
        }
    }
}

/// Waits until the server that is well has been found so, and checks that the other one gets no request.
pub(crate) fn check_probes(front: &str, from: &str) {
    let url = format!("http://{front}/probed/from");
    wait_for(|| {
        output_of("curl", &["-sSf", "-m", "20", &url])
            .status
            .success()
    });
    let got = get(&vec![url; 10]);
    assert_eq!(String::from_utf8_lossy(&got), from.repeat(10));
}
