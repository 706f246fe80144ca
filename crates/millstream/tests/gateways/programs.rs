//! Programs that wait for requests on sockets in a directory, and end with the test.

use crate::servers::{Program, Servers};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

pub(crate) struct Programs {
    pub(crate) directory: PathBuf,
    children: Vec<Child>,
}

/// How often a program is asked whether it listens, and how long in between: 20 s in all.
const ASKS_MAX: u32 = 2000;
const ASK_INTERVAL: Duration = Duration::from_millis(10);

const PAGES: [(&str, &str); 7] = [
    (
        "show.php",
        "<?php $s = $_SERVER; header('X-A: b'); echo basename($s['SCRIPT_NAME']), '|', $s['PATH_INFO'] ?? '', '|',
         $s['QUERY_STRING'], '|', $s['HTTP_X_Y'] ?? '-', '|', strlen(file_get_contents('php://input')), '|',
         $s['CONTENT_LENGTH'] ?? '-';",
    ),
    ("folder/index.php", "<?php echo 'in a folder';"),
    ("gone.php", "<?php http_response_code(404); echo 'gone';"),
    ("moved.php", "<?php header('Location: /x');"),
    ("large.php", "<?php echo str_repeat(\"0123456789\\n\", 50000);"),
    ("length.php", "<?php header('Content-Length: 7'); echo 'exactly';"),
    (
        "warn.php",
        "<?php error_log($_SERVER['QUERY_STRING'] . '.'); echo 'warned';",
    ),
];

const UWSGI: &str = "
def application(env, start):
    length = len(env['wsgi.input'].read())
    start('201 Made', [('Content-Type', 'text/plain'), ('X-App', 'uwsgi')])
    return ['|'.join([env['PATH_INFO'], env['QUERY_STRING'], env.get('HTTP_X_Y', '-'), str(length)]).encode()]
";

const SCGI: &str = "
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(64)
while True:
    connection, _ = listener.accept()
    stream = connection.makefile('rb')
    digits = b''
    while (byte := stream.read(1)) not in (b':', b''):
        digits += byte
    if digits:
        words = stream.read(int(digits)).decode().split('\\0')
        stream.read(1)
        env = dict(zip(words[0::2], words[1::2]))
        length = len(stream.read(int(env['CONTENT_LENGTH'])))
        text = '|'.join([env['REQUEST_URI'], env.get('HTTP_X_Y', '-'), str(length), env['SCGI']])
        connection.sendall(('Status: 202 Taken\\nContent-Type: text/plain\\n\\n' + text).encode())
    stream.close()
    connection.close()
";

impl Programs {
    /// A directory with pages; `None` if a program that the test needs is not installed.
    pub(crate) fn new(needed: &[&str]) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if let Some(missing) = needed.iter().find(|name| find(name).is_none()) {
            println!("not tested: {missing} is not installed");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("millstream-gateways-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(directory.join("www/folder")).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        for (name, text) in PAGES {
            fs::write(directory.join("www").join(name), text).unwrap();
        }
        Some(Self {
            directory,
            children: Vec::new(),
        })
    }

    pub(crate) fn php_cgi(&mut self) {
        let socket = self.path("php");
        let mut command = self.command("php-cgi");
        command.arg("-b").arg(&socket);
        self.start(command, &socket);
    }

    pub(crate) fn php_fpm(&mut self) {
        let (socket, conf) = (self.path("php"), self.path("fpm.conf"));
        let directory = self.directory.display();
        let text = format!(
            "[global]\nerror_log = {directory}/fpm.log\n[www]\nuser = nobody\ngroup = nogroup\nlisten = {directory}/php\n\
             listen.mode = 0666\npm = static\npm.max_children = 4\n"
        );
        fs::write(&conf, text).unwrap();
        let mut command = self.command("php-fpm");
        command.args(["-F", "-y"]).arg(&conf);
        self.start(command, &socket);
    }

    pub(crate) fn uwsgi(&mut self) {
        let socket = self.path("uwsgi");
        let place = socket.display().to_string();
        self.start_uwsgi(["--socket", &place], &socket);
    }

    /// The same under TLS, with the certificate `uwsgi.pem` of the name `a.example`.
    pub(crate) fn uwsgi_under_tls(&mut self) {
        let [socket, certificate, key] = ["suwsgi", "uwsgi.pem", "uwsgi.key"].map(|x| self.path(x));
        let mut command = self.command("openssl");
        command
            .args([
                "req", "-x509", "-nodes", "-days", "30", "-newkey", "rsa:2048",
            ])
            .args([
                "-subj",
                "/CN=a.example",
                "-addext",
                "subjectAltName=DNS:a.example",
            ])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate);
        assert!(command.status().unwrap().success());
        let all = [&socket, &certificate, &key].map(|path| path.display().to_string());
        self.start_uwsgi(["--suwsgi-socket", &all.join(",")], &socket);
    }

    fn start_uwsgi(&mut self, place: [&str; 2], socket: &Path) {
        let program = self.path("app.py");
        fs::write(&program, UWSGI).unwrap();
        let mut command = self.command("uwsgi-core");
        command
            .args(["--plugins-dir", "/usr/lib/uwsgi/plugins"])
            .args(["--plugin", "python3", "--chmod-socket=666"])
            .args(place)
            .arg("--wsgi-file")
            .arg(&program);
        self.start(command, socket);
    }

    pub(crate) fn scgi(&mut self) {
        let socket = self.path("scgi");
        let mut command = self.command("python3");
        command.args(["-c", SCGI]).arg(&socket);
        self.start(command, &socket);
    }

    /// With these keys, flags and values.
    pub(crate) fn memcached(&mut self, values: &[(&str, u32, &str)]) {
        let socket = self.path("memcached");
        let mut command = self.command("memcached");
        command
            .args(["-u", "nobody", "-a", "0666", "-s"])
            .arg(&socket);
        self.start(command, &socket);
        let mut stream = UnixStream::connect(&socket).unwrap();
        for (key, flags, value) in values {
            let length = value.len();
            write!(stream, "set {key} {flags} 0 {length}\r\n{value}\r\n").unwrap();
        }
        stream.write_all(b"quit\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert_eq!(said, "STORED\r\n".repeat(values.len()));
    }

    /// nginx and Millstream with these directives in their server.
    pub(crate) fn servers(&mut self, directives: &str) -> Servers {
        for program in [Program::Nginx, Program::Millstream] {
            let socket = self.path(program.name());
            let conf = program.configure(&self.directory, directives);
            let mut command = match program {
                Program::Nginx => self.command("nginx"),
                Program::Millstream => {
                    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
                    command.arg("serve");
                    command
                }
            };
            command.arg("-p").arg(&self.directory).arg("-c").arg(conf);
            command.args(["-e", "start.log"]);
            self.start(command, &socket);
        }
        Servers::new(&self.directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(find(name).unwrap());
        command.current_dir(&self.directory);
        command
    }

    /// Starts a program, and waits until it listens.
    fn start(&mut self, mut command: Command, socket: &Path) {
        let output = fs::File::create(socket.with_extension("out")).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        let mut child = command.spawn().unwrap();
        for _ in 0..ASKS_MAX {
            if UnixStream::connect(socket).is_ok() {
                self.children.push(child);
                return;
            }
            assert_eq!(child.try_wait().unwrap(), None, "{}", said(socket));
            thread::park_timeout(ASK_INTERVAL);
        }
        let _ = child.kill();
        let _ = child.wait();
        panic!("{} does not listen: {}", socket.display(), said(socket));
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for child in &mut self.children {
            // php-fpm ends its own processes when it is asked to end.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn said(socket: &Path) -> String {
    fs::read_to_string(socket.with_extension("out")).unwrap_or_default()
}

/// Where a program is; those of administrators are in no user's PATH, and Debian's php-fpm has its version in its name.
fn find(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin"];
    let mut paths = folders.iter().map(|folder| Path::new(folder).join(name));
    let versioned = || {
        let files = fs::read_dir("/usr/sbin").ok()?.flatten();
        let mut paths = files.map(|file| file.path());
        paths.find(|path| path.to_string_lossy().starts_with("/usr/sbin/php-fpm"))
    };
    let exact = paths.find(|path| path.exists());
    exact.or_else(|| (name == "php-fpm").then(versioned).flatten())
}
