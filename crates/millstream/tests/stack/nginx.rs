//! nginx on kernel sockets, as the target of load.

use crate::namespace::get;
use crate::server::{Site, wait_for};
use std::process::{Child, Command, Stdio};

/// nginx in the calling thread's namespace, ended whatever happens.
pub(crate) struct Nginx(Child);

impl Nginx {
    /// Returns once it serves at port 80, as `servers` has to say.
    pub(crate) fn start(site: &Site, servers: &str) -> Self {
        let conf = site.configure("master_process off;", servers);
        let child = Command::new("nginx")
            .args(["-c", &conf, "-e", "stderr"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let nginx = Self(child.unwrap());
        wait_for(|| get("http://127.0.0.1/").is_some());
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It serves in its first process.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
