//! An engine that notes what it is told.

use super::*;
use crate::frang::blocks::Blocks;
use crate::frang::clients::Clients;
use crate::frang::kinds::Kinds;
use mill_config::config::frang::FrangLimits;
use mill_runtime::address::Address;
use mill_runtime::engine::{
    Accept, ConnectOptions, Events, ListenError, ListenOptions, ListenerId, Listening, Park,
};
use mill_runtime::stream::StreamError;
use mill_runtime::time::UnixTime;
use mill_sim::engine::SimEngine;
use mill_sim::world::World;
use std::cell::RefCell;

/// A simulated engine that can block.
#[derive(Clone)]
struct Noting {
    inner: SimEngine,
    told: Rc<RefCell<Vec<Vec<IpAddr>>>>,
}

impl Engine for Noting {
    type Stream = <SimEngine as Engine>::Stream;
    type Files = <SimEngine as Engine>::Files;

    fn files(&self) -> &Self::Files {
        self.inner.files()
    }

    fn clock(&self) -> (Instant, UnixTime) {
        self.inner.clock()
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }

    fn listen(&self, options: &ListenOptions) -> Result<Listening, ListenError> {
        self.inner.listen(options)
    }

    fn close_listener(&self, listener: ListenerId) {
        self.inner.close_listener(listener);
    }

    fn set_accepting(&self, listener: ListenerId, accepting: bool) {
        self.inner.set_accepting(listener, accepting);
    }

    fn accept(&self, listener: ListenerId, task: TaskId) -> Accept<Self::Stream> {
        self.inner.accept(listener, task)
    }

    fn accepts_freely(&self, listener: ListenerId) -> bool {
        self.inner.accepts_freely(listener)
    }

    fn connect(
        &self,
        target: &Address,
        options: &ConnectOptions,
        task: TaskId,
    ) -> Result<Self::Stream, StreamError> {
        self.inner.connect(target, options, task)
    }

    fn poll(&self, park: Park, events: &mut Events) -> (Instant, UnixTime) {
        self.inner.poll(park, events)
    }

    fn settle(&self) {
        self.inner.settle();
    }

    fn set_blocked(&self, addresses: &[IpAddr]) {
        self.told.borrow_mut().push(addresses.to_vec());
    }

    fn can_block(&self) -> bool {
        true
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(1_000_000_000 + ms * 1_000_000)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn an_engine_is_told_of_changes_together_and_of_what_has_ended() {
    let engine = Noting {
        inner: World::new(1).engine(),
        told: Rc::default(),
    };
    let blocks = Arc::new(Blocks::default());
    blocks.set_most(10);
    let frang = Arc::new(Frang {
        limits: FrangLimits::default(),
        clients: Arc::new(Clients::new(10)),
        tls_kinds: Arc::new(Kinds::new(&[])),
        http_kinds: Arc::new(Kinds::new(&[])),
        blocks: Arc::clone(&blocks),
    });
    let mut followed = Followed::default();
    followed.adopt(Some(&frang));
    let mut turn = |ms: u64| {
        followed.follow(&engine, at(ms));
        std::mem::take(&mut *engine.told.borrow_mut())
    };
    let (one, two) = (address("10.0.0.1"), address("10.0.0.2"));
    let none: Vec<Vec<IpAddr>> = Vec::new();
    assert_eq!(turn(0), [Vec::<IpAddr>::new()], "a new configuration");
    assert_eq!(turn(500), none);
    blocks.insert(one, "api", at(500), at(2000));
    assert_eq!(turn(501), [[one]]);
    blocks.insert(two, "api", at(510), Instant::FAR);
    assert_eq!(turn(520), none, "it is told a little later");
    assert_eq!(turn(601), [vec![one, two]]);
    assert_eq!(turn(1999), none);
    assert_eq!(turn(2000), [[two]]);
    assert_eq!(turn(9000), none);
    blocks.remove(two, at(9000));
    assert_eq!(turn(9001), [Vec::<IpAddr>::new()]);
    followed.adopt(None);
    followed.follow(&engine, at(9002));
    followed.follow(&engine, at(9003));
    assert_eq!(*engine.told.borrow(), [Vec::<IpAddr>::new()], "once");
}
