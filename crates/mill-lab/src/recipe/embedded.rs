//! The recipes that come with Millstream, inside the program: `lab list` needs no folder.

/// The text of a file below `recipes/`.
pub(super) fn file(name: &str) -> Option<&'static str> {
    let found = FILES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// Ids of the recipes, in the order of `lab list`.
pub(super) fn ids() -> impl Iterator<Item = &'static str> {
    FILES
        .iter()
        .filter_map(|(name, _)| name.strip_suffix(".toml"))
}

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../recipes/", $name)))),*]
    };
}

/// Every file of `recipes/` and `recipes/conf/`, recipes in the order of the catalogue's rows, those without
/// a row first.
const FILES: &[(&str, &str)] = embedded![
    "first-look.toml",
    "smallest.toml",
    "bench-serve.toml",
    "bench-load.toml",
    "bench-bypass.toml",
    "bench-run.toml",
    "bench-generator.toml",
    "bench-proxy.toml",
    "bench-cache.toml",
    "bench-tls.toml",
    "proxy-baseline.toml",
    "tempesta-close.toml",
    "tempesta-vm.toml",
    "tempesta-macvtap.toml",
    "tempesta-host-to-vm.toml",
    "tempesta-host-cpu.toml",
    "tempesta-path.toml",
    "tempesta-vm-exits.toml",
    "tempesta-tls.toml",
    "onload-clients.toml",
    "onload-cookbook.toml",
    "onload-cookbook-100g.toml",
    "onload-cookbook-10g.toml",
    "onload-profiles.toml",
    "onload-tps-tls.toml",
    "dragonfly-polling.toml",
    "dragonfly-reuseport.toml",
    "dragonfly-workers.toml",
    "dragonfly-objects.toml",
    "dragonfly-window.toml",
    "rubris-baseline.toml",
    "rubris-rate.toml",
    "rubris-localhost.toml",
    "rubris-capture.toml",
    "nginx-jemalloc.toml",
    "nginx-environment.toml",
    "nginx-hotspots.toml",
    "fstack-lcores.toml",
    "fstack-idle-sleep.toml",
    "fstack-jemalloc.toml",
    "fstack-gzip.toml",
    "fstack-hugepages.toml",
    "fstack-hyperthreading.toml",
    "fstack-latency.toml",
    "conf/bench.conf",
    "conf/cache.conf",
    "conf/cache-memory.conf",
    "conf/cookbook.conf",
    "conf/dragonfly.conf",
    "conf/f-stack.conf",
    "conf/first-look-millstream.conf",
    "conf/first-look.conf",
    "conf/fstack-kernel.conf",
    "conf/fstack-nginx.conf",
    "conf/h2o-clear.conf",
    "conf/h2o-tls-workers.conf",
    "conf/h2o-tls.conf",
    "conf/haproxy-cache.cfg",
    "conf/haproxy-tls.cfg",
    "conf/haproxy.cfg",
    "conf/nginx-evaluation.conf",
    "conf/onload-balanced.opf",
    "conf/onload-performance.opf",
    "conf/proxy-origin.conf",
    "conf/proxy.conf",
    "conf/rubris.conf",
    "conf/tempesta-nginx.conf",
    "conf/tempesta_fw.conf",
    "conf/tls-ec.key",
    "conf/tls-ec.pem",
    "conf/tls-rsa.key",
    "conf/tls-rsa.pem",
    "conf/tls-workers.conf",
    "conf/tls.conf",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn listing(folder: &str, prefix: &str) -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = std::fs::read_dir(folder).unwrap();
        let files = entries
            .map(Result::unwrap)
            .filter(|entry| entry.path().is_file());
        files
            .map(|entry| format!("{prefix}{}", entry.file_name().to_string_lossy()))
            .collect()
    }

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let mut expected = listing("recipes", "");
        expected.extend(listing("recipes/conf", "conf/"));
        let embedded: BTreeSet<String> =
            FILES.iter().map(|(name, _)| String::from(*name)).collect();
        assert_eq!(embedded, expected);
    }

    #[test]
    fn ids_are_the_names_of_recipes_only() {
        assert!(ids().all(|id| file(&format!("{id}.toml")).is_some()));
        assert!(ids().all(|id| !id.contains('/')));
    }
}
