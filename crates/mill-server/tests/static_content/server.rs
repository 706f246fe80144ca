//! One configuration over a small site of simulated files, without connections.

use crate::recorder::local::{self, ADDRESS, message_of};
use crate::recorder::whole;
use mill_http::date::imf_fixdate;
use mill_server::local::{FileOf, Local};
use mill_server::log::LogSender;
use mill_server::response::Response;
use mill_sim::engine::SimEngine;
use mill_sim::world::World;
use std::rc::Rc;

/// One configuration over a small site.
pub(crate) struct Server {
    pub(crate) world: World,
    local: Rc<Local<SimEngine>>,
    logs: LogSender,
}

impl Server {
    /// `directives` go into a `server` block.
    pub(crate) fn new(directives: &str) -> Self {
        let world = World::new(1);
        for (path, content) in [
            ("/srv/a.txt", "0123456789"),
            ("/srv/empty.txt", ""),
            ("/srv/long.html", &*"<p>the mill stream</p>".repeat(100)),
            ("/srv/z.txt", "plain"),
            ("/srv/z.txt.gz", "zipped"),
            ("/srv/dir/index.html", "index"),
            ("/srv/dir/other.html", "other"),
        ] {
            world.files().write(path, content);
        }
        world.files().create_directory("/srv/none");
        let text = format!(
            "error_log /error.log info; events {{ }}
            http {{
                access_log off;
                types {{ text/html html; text/plain txt; }}
                server {{ listen {ADDRESS}; root /srv; {directives} }}
            }}"
        );
        let (local, logs) = local::start(&world, &text, |_| 3600);
        Self { world, local, logs }
    }

    /// Requests `METHOD TARGET | FIELD: VALUE | …` and compares `STATUS | FIELD: VALUE | … | CONTENT`. `{date}` is the
    /// files' date.
    pub(crate) fn check(&self, asked: &str, expected: &str) {
        let date = imf_fixdate(self.local.scheduler.wall_clock().seconds);
        let date = std::str::from_utf8(&date).expect("a date is text");
        assert_eq!(self.ask(asked), expected.replace("{date}", date), "{asked}");
    }

    pub(crate) fn ask(&self, asked: &str) -> String {
        match self.answer(asked) {
            Some(response) => self.show(response),
            None => String::from("closed"),
        }
    }

    /// The content alone, also of an error page.
    pub(crate) fn content_of(&self, asked: &str) -> String {
        match self.answer(asked) {
            Some(response) => {
                let content = whole(response, &self.local);
                String::from_utf8_lossy(&content).into_owned()
            }
            None => String::from("closed"),
        }
    }

    /// The answer as it is sent; `None` if the connection is closed without one.
    fn answer(&self, asked: &str) -> Option<Response<FileOf<SimEngine>>> {
        let mut parts = asked.split(" | ");
        let line = parts.next().unwrap_or_default();
        let fields: String = parts.map(|field| format!("{field}\r\n")).collect();
        let text = format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        local::handle(text, &self.world, &self.local).answer
    }

    fn show(&self, response: Response<FileOf<SimEngine>>) -> String {
        let mut parts = vec![response.status.0.to_string()];
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        parts.extend(response.content_type.as_deref().map(text));
        let modified = response.last_modified.map(|at| text(&imf_fixdate(at)));
        parts.extend(modified.map(|date| format!("modified {date}")));
        parts.extend(response.location.as_deref().map(text));
        parts.extend(response.vary.then(|| String::from("vary")));
        parts.extend(response.etag.as_deref().map(text));
        let lines = response.fields.iter().chain(&response.trailers);
        parts.extend(lines.map(|line| format!("{}: {}", text(&line.name), text(&line.value))));
        let is_page = response.status.0 >= 300;
        let content = whole(response, &self.local);
        if !is_page && !content.is_empty() {
            parts.push(text(&content));
        }
        parts.join(" | ")
    }

    /// The last line of the error log, from its level on and without the details of the request.
    pub(crate) fn last_error(&self) -> String {
        self.local.log.end_of_turn(self.world.now());
        let lines = self.logs.lines("/error.log");
        lines
            .last()
            .map(|line| message_of(line))
            .unwrap_or_default()
    }
}
