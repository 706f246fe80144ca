//! Statistics as `done` sees them.

use crate::dialect::wrk::statistics::Statistics;
use mlua::{MetaMethod, UserData, UserDataFields, UserDataMethods};

/// `latency` or `requests`.
pub(super) struct View<'a>(pub(super) &'a dyn Statistics);

impl UserData for View<'_> {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("min", |_, this| Ok(this.0.min()));
        fields.add_field_method_get("max", |_, this| Ok(this.0.max()));
        fields.add_field_method_get("mean", |_, this| Ok(this.0.mean()));
        fields.add_field_method_get("stdev", |_, this| Ok(this.0.stdev()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |_, this, percent: f64| {
            Ok(this.0.percentile(percent))
        });
        methods.add_meta_method(MetaMethod::Len, |_, this, ()| Ok(this.0.distinct()));
        // Scripts count from 1.
        methods.add_meta_method(MetaMethod::Call, |_, this, place: u64| {
            let index = place.checked_sub(1);
            Ok(index.and_then(|index| this.0.nth(index)).unwrap_or((0, 0)))
        });
        methods.add_meta_method(MetaMethod::Index, |_, _, _: mlua::Value| {
            Ok(mlua::Value::Nil)
        });
    }
}
