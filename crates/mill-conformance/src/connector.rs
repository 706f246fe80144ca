//! A server that connects.

use crate::client::Client;
use crate::content::take_all;
use crate::server::{Server, Testbed};
use crate::story::Story;
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};

/// What was read, or why nothing was.
pub type Answers = Story<Result<Vec<u8>, StreamError>>;

/// A worker with one task, which connects to `target` and then writes and reads.
pub fn start_connecting<T: Testbed>(
    target: Address,
    options: ConnectOptions,
    drain_first: bool,
) -> (Server<T>, Answers, Client<T::Peer>) {
    let story = Story::default();
    let teller = story.clone();
    let server = Server::<T>::start(move |_trigger, around| {
        let (teller, target, options) = (teller.clone(), target.clone(), options.clone());
        async move {
            let task = around.scheduler.current();
            let opened = around.engine.connect(&target, &options, task);
            let answer = async {
                let stream = opened?;
                assert_eq!(stream.queued(), 0);
                if drain_first {
                    stream.drained(0).await?;
                }
                stream.write(Payload::Copy(b"question"));
                stream.readable(6).await?;
                Ok(take_all(&stream))
            };
            teller.tell(answer.await);
        }
    });
    let client = server.connect();
    (server, story, client)
}
