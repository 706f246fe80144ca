//! `millstream_api`: the server's state as JSON, with the paths, names and shapes of NGINX Plus' API version 9.
//!
//! A path is `/VERSION/WHAT…` behind the location's name; docs/api.md lists them all. What is read is made in the file of its
//! subject, what is changed goes through `writing`.

/// Why a call is refused.
mod error;

/// The server as a whole, connections, requests, workers.
mod general;

/// Groups of servers: their state.
mod upstreams;

/// Servers of a group: their settings.
mod servers;

/// What resolvers have counted.
mod resolvers;

/// Caches.
mod caches;

/// Limits of clients.
mod frang;
/// Zones of `limit_req` and `limit_conn`.
mod limits;

/// Servers and locations with a `status_zone`.
mod zones;

/// What is counted of connections and requests since a reset.
pub(crate) mod baselines;

/// Statistics that begin anew.
mod resetting;

/// Removing what caches hold.
mod purging;

/// Changes of servers.
mod writing;

use crate::answer::Answer;
use crate::exchange::Exchange;
use crate::local::{AnswerOf, Local};
use crate::request::Request;
use crate::response::Response;
use crate::variables;
use error::ApiError;
use mill_config::config::Variable;
use mill_http::date::emit_time_iso8601;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::time::Instant;
use serde_json::{Map, Value, json};
use zones::Kind;

/// Answers, if the location has the API.
pub(crate) async fn respond<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> AnswerOf<X::Engine> {
    let Some(api) = request.location.api else {
        return Answer::Declined;
    };
    request.pure = false;
    let name = request.location.name.text();
    let path = request.uri.strip_prefix(name).unwrap_or(&request.uri);
    let path = String::from_utf8_lossy(path).into_owned();
    let path: Vec<&str> = path.trim_matches('/').split('/').collect();
    let done = match request.method_name() {
        b"GET" | b"HEAD" => read(&path, request, local),
        _ if !api.write => Err(ApiError::METHOD_DISABLED),
        _ => match writing::content(exchange, request, local).await {
            Ok(content) => write(&path, &content, request, local),
            Err(answer) => return answer,
        },
    };
    let (status, value) = done.unwrap_or_else(|error| {
        if error.status == Status::METHOD_NOT_ALLOWED {
            local.counters.borrow_mut().refused_method += 1;
        }
        let id = variables::value(&Variable::RequestId, request, local);
        let id = id.map(|id| String::from_utf8_lossy(&id).into_owned());
        (error.status, Some(error.document(id)))
    });
    let Some(value) = value else {
        return Answer::Response(Box::new(Response::empty(status)));
    };
    Answer::Response(Box::new(Response::with_bytes(
        status,
        b"application/json",
        value.to_string().into_bytes(),
    )))
}

/// What a path stands for.
struct Found {
    value: Value,
    shape: Shape,
}

/// What `fields=` chooses from.
enum Shape {
    /// It has no effect.
    Whole,
    /// The object's own fields.
    Object,
    /// The fields of each object; of none, only their names are told.
    Collection,
}

/// The status of the answer, and its document if it has one.
type Done = Result<(Status, Option<Value>), ApiError>;

fn write<E: Engine>(path: &[&str], content: &[u8], request: &Request, local: &Local<E>) -> Done {
    match path {
        [version, rest @ ..] if is_version(version) => {
            writing::change(rest, content, request, local)
        }
        [""] => Err(ApiError::METHOD_NOT_SUPPORTED),
        _ => Err(ApiError::UNKNOWN_VERSION),
    }
}

fn read<E: Engine>(path: &[&str], request: &Request, local: &Local<E>) -> Done {
    let found = match path {
        [""] => Found::whole(json!(VERSIONS)),
        [version, rest @ ..] if is_version(version) => find(rest, request, local)?,
        _ => return Err(ApiError::UNKNOWN_VERSION),
    };
    let value = found.limited_to(fields(&request.args).as_deref());
    Ok((Status::OK, Some(value)))
}

fn find<E: Engine>(path: &[&str], request: &Request, local: &Local<E>) -> Result<Found, ApiError> {
    let (groups, limited) = (&request.site.upstreams, &request.site.limits);
    let clock = Clock::of(local);
    Ok(match path {
        [] => Found::whole(subjects(request)),
        ["nginx"] => Found::object(general::nginx(request, local)),
        ["processes"] => Found::object(json!({ "respawned": 0 })),
        ["connections"] => {
            Found::object(general::connections(&local.all_counters(), None, request))
        }
        ["ssl"] => Found::object(general::ssl()),
        ["workers"] => Found::whole(general::workers(request, local)),
        ["workers", id] => Found::object(general::worker(id, request, local)?),
        ["slabs"] | ["http", "keyvals"] => Found::collection(json!({})),
        ["slabs", _] => return Err(ApiError::SLAB_NOT_FOUND),
        ["http", "keyvals", _] => return Err(ApiError::KEYVAL_NOT_FOUND),
        ["http"] => Found::whole(json!([
            "requests",
            "server_zones",
            "location_zones",
            "caches",
            "limit_conns",
            "limit_reqs",
            "upstreams",
            "keyvals"
        ])),
        ["http", "requests"] => {
            Found::object(general::requests(&local.all_counters(), None, request))
        }
        ["http", "upstreams"] => Found::collection(upstreams::all(groups, &clock)),
        ["http", "upstreams", name] => {
            Found::object(upstreams::group(upstreams::named(name, groups)?, &clock))
        }
        ["http", "upstreams", name, "servers"] => {
            Found::whole(servers::all(upstreams::named(name, groups)?))
        }
        ["http", "upstreams", name, "servers", id] => {
            Found::whole(servers::one(upstreams::named(name, groups)?, id)?)
        }
        ["http", "server_zones", rest @ ..] => of_zones(Kind::Servers, rest, request)?,
        ["http", "location_zones", rest @ ..] => of_zones(Kind::Locations, rest, request)?,
        ["http", "caches"] => Found::collection(caches::all(&request.site.caches)),
        ["http", "caches", name] => Found::object(caches::one(name, &request.site.caches)?),
        ["http", "limit_reqs"] => Found::collection(limits::all(&limited.requests)),
        ["http", "limit_reqs", name] => Found::object(limits::one(name, &limited.requests)?),
        ["http", "limit_conns"] => Found::collection(limits::all(&limited.connections)),
        ["http", "limit_conns", name] => Found::object(limits::one(name, &limited.connections)?),
        ["stream", rest @ ..] if request.site.config.stream.is_some() => match rest {
            [] => Found::whole(json!(["limit_conns"])),
            ["limit_conns"] => Found::collection(limits::all(&limited.sessions)),
            ["limit_conns", name] => Found::object(limits::one(name, &limited.sessions)?),
            _ => return Err(ApiError::PATH_NOT_FOUND),
        },
        ["http", "frang"] => Found::object(frang::figures(request, &clock)?),
        ["http", "frang", "blocks"] => Found::collection(frang::blocks(request, &clock)?),
        ["http", "frang", "blocks", address] => {
            Found::object(frang::block(address, request, &clock)?)
        }
        ["resolvers"] => Found::collection(resolvers::all(&request.site.resolver_zones)),
        ["resolvers", name] => Found::object(resolvers::one(name, &request.site.resolver_zones)?),
        _ => return Err(ApiError::PATH_NOT_FOUND),
    })
}

/// What there is behind the version.
fn subjects(request: &Request) -> Value {
    let mut names = vec!["nginx", "processes", "connections", "slabs", "http"];
    names.extend(request.site.config.stream.iter().map(|_| "stream"));
    names.extend(["resolvers", "ssl", "workers"]);
    json!(names)
}

fn of_zones(kind: Kind, path: &[&str], request: &Request) -> Result<Found, ApiError> {
    let zones = &request.site.zones;
    match path {
        [] => Ok(Found::collection(kind.all(zones))),
        [name] => kind.one(name, zones).map(Found::object),
        _ => Err(ApiError::PATH_NOT_FOUND),
    }
}

/// The versions of the API whose names and shapes these are: a later one only adds to them.
const VERSIONS: [u8; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

fn is_version(text: &str) -> bool {
    VERSIONS.iter().any(|version| version.to_string() == text)
}

impl Found {
    const fn whole(value: Value) -> Self {
        let shape = Shape::Whole;
        Self { value, shape }
    }

    const fn object(value: Value) -> Self {
        let shape = Shape::Object;
        Self { value, shape }
    }

    const fn collection(value: Value) -> Self {
        let shape = Shape::Collection;
        Self { value, shape }
    }

    fn limited_to(self, fields: Option<&str>) -> Value {
        match (fields, self.shape, self.value) {
            (Some(""), Shape::Collection, Value::Object(all)) => {
                all.into_iter().map(|(name, _)| name).collect()
            }
            (Some(fields), Shape::Collection, Value::Object(all)) => {
                let limit = |(name, object)| (name, limit(object, fields));
                Value::Object(all.into_iter().map(limit).collect())
            }
            (Some(fields), Shape::Object, object) => limit(object, fields),
            (_, _, value) => value,
        }
    }
}

fn limit(value: Value, fields: &str) -> Value {
    let Value::Object(object) = value else {
        return value;
    };
    let is_wanted = |(name, _): &(String, Value)| fields.split(',').any(|field| field == name);
    Value::Object(object.into_iter().filter(is_wanted).collect::<Map<_, _>>())
}

/// The argument `fields`, if there is one.
fn fields(args: &[u8]) -> Option<String> {
    let mut all = args.split(|byte| *byte == b'&');
    let fields = all.find_map(|argument| argument.strip_prefix(b"fields="))?;
    Some(
        String::from_utf8_lossy(fields)
            .replace("%2C", ",")
            .replace("%2c", ","),
    )
}

/// This moment, on both clocks.
struct Clock {
    now: Instant,
    wall_ms: i64,
}

impl Clock {
    fn of<E: Engine>(local: &Local<E>) -> Self {
        let wall = local.scheduler.wall_clock();
        Self {
            now: local.scheduler.now(),
            wall_ms: wall.seconds.saturating_mul(1000) + i64::from(wall.millis()),
        }
    }

    /// A moment that has passed, in the format of ISO 8601 with milliseconds.
    fn date(&self, at: Instant) -> String {
        let elapsed = i64::try_from(self.now.since(at).as_millis()).unwrap_or(i64::MAX);
        let ms = self.wall_ms.saturating_sub(elapsed);
        let mut text = Vec::new();
        emit_time_iso8601(ms.div_euclid(1000), 0, &mut text);
        let text = String::from_utf8_lossy(&text);
        let text = text.strip_suffix("+00:00").unwrap_or(&text);
        format!("{text}.{:03}Z", ms.rem_euclid(1000))
    }
}
