//! Rust's h2, the HTTP/2 of hyper.

use crate::executor::{Task, all, run};
use crate::stage::{Stage, on_every_network};
use crate::transport::Transport;
use bytes::Bytes;
use h2::RecvStream;
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::{HeaderMap, Method, Request, Response};
use std::fs;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

on_every_network!(converse);

/// A request's content, and the fields behind it.
#[derive(Default)]
struct Content {
    bytes: Bytes,
    trailers: Option<HeaderMap>,
}

/// An answer, whole.
struct Answer {
    /// Statuses of the answers before it.
    informed: Vec<u16>,
    status: u16,
    fields: HeaderMap,
    content: Vec<u8>,
    trailers: Option<HeaderMap>,
}

fn converse(stage: &Stage<'_>) {
    for is_secured in [false, true] {
        small_windows(stage, is_secured);
        large_windows(stage, is_secured);
        last_requests(stage, is_secured);
    }
    reload(stage);
    stage.assert_carried();
    end(stage);
}

/// Runs a conversation over a connection of its own. It ends in order, unless `conversation` has had it fail.
#[track_caller]
fn connected<T>(
    stage: &Stage<'_>,
    is_secured: bool,
    builder: &Builder,
    conversation: impl AsyncFnOnce(SendRequest<Bytes>) -> T,
) -> T {
    let authority = stage.site.path("ca.pem");
    let port = if is_secured { 443 } else { 80 };
    let transport = stage.at_client(|| {
        Transport::connect(
            stage.address(port),
            is_secured.then_some(authority.as_path()),
        )
    });
    let socket = Rc::clone(&transport.socket);
    let nothing: Task = Box::pin(std::future::ready(()));
    let handshake = builder.handshake::<_, Bytes>(transport);
    let (client, connection) = run(&socket, nothing, handshake).unwrap();
    let beside: Task = Box::pin(async move {
        let end = connection.await;
        assert!(end.is_ok(), "{end:?}");
    });
    run(&socket, beside, conversation(client))
}

async fn get(client: &SendRequest<Bytes>, path: &str) -> Answer {
    ask(client.clone(), Method::GET, path, None).await
}

/// A request and its answer.
async fn ask(
    client: SendRequest<Bytes>,
    method: Method,
    path: &str,
    content: Option<Content>,
) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(format!("http://a.example{path}"))
        .header("te", "trailers")
        .body(())
        .unwrap();
    let mut client = client.ready().await.unwrap();
    let (mut response, mut stream) = client.send_request(request, content.is_none()).unwrap();
    if let Some(Content {
        mut bytes,
        trailers,
    }) = content
    {
        while !bytes.is_empty() {
            stream.reserve_capacity(bytes.len());
            let room = poll_fn(|context| stream.poll_capacity(context)).await;
            let len = room.unwrap().unwrap().min(bytes.len());
            stream.send_data(bytes.split_to(len), false).unwrap();
        }
        match trailers {
            Some(fields) => stream.send_trailers(fields).unwrap(),
            None => stream.send_data(Bytes::new(), true).unwrap(),
        }
    }
    let mut informed = Vec::new();
    let response = answered(&mut response, &mut informed).await;
    let (parts, mut receiver) = response.into_parts();
    let content = received(&mut receiver).await;
    Answer {
        informed,
        status: parts.status.as_u16(),
        fields: parts.headers,
        content,
        trailers: receiver.trailers().await.unwrap(),
    }
}

/// The final answer's head; the statuses before it go to `informed`.
async fn answered(response: &mut ResponseFuture, informed: &mut Vec<u16>) -> Response<RecvStream> {
    poll_fn(|context| {
        while let Poll::Ready(Some(before)) = response.poll_informational(context) {
            informed.push(before.unwrap().status().as_u16());
        }
        std::pin::Pin::new(&mut *response).poll(context)
    })
    .await
    .unwrap()
}

/// The content, whose windows are opened as it comes.
async fn received(receiver: &mut RecvStream) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(piece) = receiver.data().await {
        let piece = piece.unwrap();
        content.extend_from_slice(&piece);
        receiver
            .flow_control()
            .release_capacity(piece.len())
            .unwrap();
    }
    content
}

/// Bytes that differ from each other.
fn pattern(len: usize) -> Bytes {
    (0..=250_u8).cycle().take(len).collect()
}

fn small_windows(stage: &Stage<'_>, is_secured: bool) {
    let large = fs::read(stage.site.path("large.bin")).unwrap();
    connected(stage, is_secured, &Builder::new(), async |client| {
        let told = get(&client, "/values").await;
        let tls = if is_secured { "TLSv1.3" } else { "" };
        assert_eq!(told.content, format!("{tls} HTTP/2.0 a.example").as_bytes());
        for (path, status, content) in [
            ("/index.html", 200, &b"hello\n"[..]),
            ("/index.html", 200, b"hello\n"),
            ("/zero", 200, b""),
            ("/nothing", 204, b""),
        ] {
            let answer = get(&client, path).await;
            assert_eq!(
                (answer.status, &answer.content[..]),
                (status, content),
                "{path}"
            );
        }
        assert_eq!(get(&client, "/none").await.status, 404);
        let head = ask(client.clone(), Method::HEAD, "/large.bin", None).await;
        assert_eq!(head.fields["content-length"], "12000000");
        assert_eq!(head.content, b"");
        let answer = get(&client, "/large.bin").await;
        assert!(answer.content == large);
        let hinted = get(&client, "/behind/hints").await;
        assert_eq!(
            (&hinted.informed[..], &hinted.content[..]),
            (&[103][..], &b"hinted"[..])
        );
        let behind = get(&client, "/behind/trailers").await;
        assert_eq!(behind.content, b"firstlast");
        assert_eq!(behind.trailers.unwrap()["x-sum"], "7");
        for path in ["/behind/echo", "/streamed/echo"] {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", "9".parse().unwrap());
            for (len, trailers) in [
                (0, None),
                (1, None),
                (3_000_000, None),
                (1_000_000, Some(trailers)),
            ] {
                let bytes = pattern(len);
                let content = Content {
                    bytes: bytes.clone(),
                    trailers,
                };
                let echoed = ask(client.clone(), Method::POST, path, Some(content)).await;
                assert_eq!(echoed.status, 200, "{path} {len}");
                assert!(echoed.content == bytes, "{path} {len}");
            }
        }
    });
}

fn large_windows(stage: &Stage<'_>, is_secured: bool) {
    let large = fs::read(stage.site.path("large.bin")).unwrap();
    let mut builder = Builder::new();
    builder
        .initial_window_size(1 << 20)
        .initial_connection_window_size(8 << 20)
        .max_frame_size(1 << 18)
        .initial_max_send_streams(100);
    connected(stage, is_secured, &builder, async |client| {
        // More than the server has begin at once: h2 lets the others wait. Until SETTINGS come it goes by a number of its own,
        // for which hyper has this one.
        let requests = (0..600).map(|number| {
            let client = client.clone();
            let path = ["/index.html", "/zero", "/nothing", "/values"][number % 4];
            Box::pin(async move { get(&client, path).await.status }) as Task<u16>
        });
        let statuses = all(requests.collect()).await;
        let count = |status| statuses.iter().filter(|found| **found == status).count();
        assert_eq!((count(200), count(204)), (450, 150));
        let downloads = (0..4).map(|_| {
            let client = client.clone();
            Box::pin(async move { get(&client, "/large.bin").await.content }) as Task<Vec<u8>>
        });
        let mut all_of_them: Vec<Task<Vec<u8>>> = downloads.collect();
        for _ in 0..4 {
            let client = client.clone();
            let content = Content {
                bytes: pattern(1_000_000),
                trailers: None,
            };
            all_of_them.push(Box::pin(async move {
                ask(client, Method::PUT, "/streamed/echo", Some(content))
                    .await
                    .content
            }));
        }
        let contents = all(all_of_them).await;
        assert!(contents[..4].iter().all(|content| *content == large));
        assert!(
            contents[4..]
                .iter()
                .all(|content| *content == pattern(1_000_000))
        );
        // A download that is given up leaves the connection to others.
        drop(begun(&client).await);
        assert_eq!(get(&client, "/index.html").await.content, b"hello\n");
    });
}

/// The server ends a connection behind the last request that it may carry, and says so.
fn last_requests(stage: &Stage<'_>, is_secured: bool) {
    connected(stage, is_secured, &Builder::new(), async |client| {
        for _ in 0..3 {
            assert_eq!(get(&client, "/few").await.content, b"few");
        }
        let error = farewell(&client).await;
        assert!(error.is_go_away() && error.is_remote(), "{error:?}");
        assert_eq!(error.reason(), Some(h2::Reason::NO_ERROR));
    });
}

/// Waits for GOAWAY.
async fn farewell(client: &SendRequest<Bytes>) -> h2::Error {
    let mut client = client.clone();
    poll_fn(|context| match client.poll_ready(context) {
        Poll::Ready(Err(error)) => Poll::Ready(error),
        _ => Poll::Pending,
    })
    .await
}

/// A reload leaves connections as they are: the next request gets the new configuration, and one on its way is finished.
fn reload(stage: &Stage<'_>) {
    let large = fs::read(stage.site.path("large.bin")).unwrap();
    // What was begun fills its own window, not the connection's.
    let mut builder = Builder::new();
    builder.initial_connection_window_size(1 << 20);
    connected(stage, true, &builder, async |client| {
        assert_eq!(get(&client, "/generation").await.content, b"1");
        let (mut receiver, first) = begun(&client).await;
        stage.reload();
        assert_eq!(get(&client, "/generation").await.content, b"2");
        receiver
            .flow_control()
            .release_capacity(first.len())
            .unwrap();
        let rest = received(&mut receiver).await;
        assert!(large[..first.len()] == first && large[first.len()..] == rest);
    });
}

/// A large answer, and its first bytes, for which no window was given back.
async fn begun(client: &SendRequest<Bytes>) -> (RecvStream, Bytes) {
    let request = Request::get("http://a.example/large.bin").body(()).unwrap();
    let mut ready = client.clone().ready().await.unwrap();
    let (response, _) = ready.send_request(request, true).unwrap();
    let mut receiver = response.await.unwrap().into_body();
    let first = receiver.data().await.unwrap().unwrap();
    (receiver, first)
}

/// The server's end is announced, and what has begun is finished.
fn end(stage: &Stage<'_>) {
    let large = fs::read(stage.site.path("large.bin")).unwrap();
    connected(stage, true, &Builder::new(), async |client| {
        let (mut receiver, first) = begun(&client).await;
        stage.quit();
        let error = farewell(&client).await;
        assert_eq!(error.reason(), Some(h2::Reason::NO_ERROR), "{error:?}");
        receiver
            .flow_control()
            .release_capacity(first.len())
            .unwrap();
        let rest = received(&mut receiver).await;
        assert!(large[..first.len()] == first && large[first.len()..] == rest);
    });
}
