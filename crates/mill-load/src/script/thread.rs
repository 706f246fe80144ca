//! A thread of the run as scripts see it: the argument of `setup`, and `wrk.thread`.

use super::address::Address;
use super::transfer::transfer;
use crate::target::Endpoint;
use core::sync::atomic::{AtomicBool, Ordering};
use mlua::{Error, Lua, LuaString, MetaMethod, UserData, UserDataFields, UserDataMethods};
use mlua::{Value, WeakLua};
use std::sync::{Arc, Mutex, PoisonError};

/// What a script changes of its thread, shared with the generator.
#[derive(Clone, Debug)]
pub(super) struct Strings {
    endpoint: Arc<Mutex<Endpoint>>,
    stopped: Arc<AtomicBool>,
}

/// The userdata. It belongs to the state of `setup`, or to the thread's own state.
pub(super) struct Thread {
    state: State,
    strings: Strings,
}

/// The thread's state. It can't be kept alive from within itself.
enum State {
    Other(Lua),
    Own(WeakLua),
}

impl Strings {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint: Arc::new(Mutex::new(endpoint)),
            stopped: Arc::default(),
        }
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        let endpoint = self.endpoint.lock();
        endpoint.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// A thread that has not begun can't be stopped: earlier requests to stop are ignored.
    pub(super) fn begin(&self) {
        self.stopped.store(false, Ordering::Relaxed);
    }

    fn set_endpoint(&self, endpoint: Endpoint) {
        *self.endpoint.lock().unwrap_or_else(PoisonError::into_inner) = endpoint;
    }
}

impl Thread {
    /// For the state of `setup` and `done`.
    pub(super) fn seen_from_outside(state: &Lua, strings: &Strings) -> Self {
        Self {
            state: State::Other(state.clone()),
            strings: strings.clone(),
        }
    }

    /// For the thread's own state.
    pub(super) fn seen_from_within(state: &Lua, strings: &Strings) -> Self {
        Self {
            state: State::Own(state.weak()),
            strings: strings.clone(),
        }
    }

    pub(super) fn state(&self) -> mlua::Result<Lua> {
        let state = match &self.state {
            State::Other(state) => Some(state.clone()),
            State::Own(state) => state.try_upgrade(),
        };
        state.ok_or_else(|| Error::runtime("the thread is no more"))
    }
}

impl UserData for Thread {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, this| Ok(Address(this.strings.endpoint())));
        fields.add_field_method_set("addr", |_, this, value: Value| {
            let kind = value.type_name();
            let Some(Address(endpoint)) = Address::of(&value) else {
                return Err(Error::runtime(format!(
                    "thread.addr has to be an address that wrk.lookup returned, not a {kind}"
                )));
            };
            this.strings.set_endpoint(endpoint);
            Ok(())
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, this, name: LuaString| {
            let state = this.state()?;
            let name = state.create_string(name.as_bytes())?;
            let value: Value = state.globals().get(name)?;
            transfer(&value, lua)
        });
        methods.add_method("set", |_, this, (name, value): (LuaString, Value)| {
            let state = this.state()?;
            let name = state.create_string(name.as_bytes())?;
            state.globals().set(name, transfer(&value, &state)?)
        });
        methods.add_method("stop", |_, this, ()| {
            this.strings.stopped.store(true, Ordering::Relaxed);
            Ok(())
        });
        methods.add_meta_method(MetaMethod::Index, |_, _, _: Value| Ok(Value::Nil));
        methods.add_meta_method_mut(MetaMethod::NewIndex, |_, _, (name, _): (Value, Value)| {
            let name = name.to_string()?;
            Err::<(), _>(Error::runtime(format!("cannot set '{name}' on thread")))
        });
    }
}
