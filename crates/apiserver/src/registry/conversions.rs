//! Collects the conversions that a synchronous computation needs, and that may have to wait for a webhook.
//!
//! The computation never waits: it records a missing conversion and continues without it. The conversions are then
//! awaited outside, and the computation is repeated with their results. It is a pure function of its input, so that it
//! requests the same conversions again, and each is made once.

use super::{TypeSchema, versions::convert_applied};
use futures_util::FutureExt;
use parking_lot::Mutex;
use pintle_machinery::{Status, Value, ValueExt};
use pintle_registry::{BoxFuture, Converter, Resource};
use std::sync::Arc;

/// The conversions of one computation.
#[derive(Default)]
pub struct Conversions(Mutex<Vec<Conversion>>);

struct Conversion {
    object: Value,
    to: String,
    state: State,
}

enum State {
    Pending(BoxFuture<'static, Result<Value, Status>>),
    Done(Option<Value>),
}

impl Conversions {
    /// The object in the version of a declaration. `None` when the conversion failed or has no result yet; in the
    /// second case the computation has to be repeated after [`Conversions::settle`].
    pub(super) fn convert(
        &self,
        converter: &Arc<dyn Converter>,
        object: &Value,
        to: &Arc<Resource>,
        schema: &TypeSchema,
    ) -> Option<Value> {
        let version = to.resource.group_version().to_string();
        if object.str_at("apiVersion") == version {
            return Some(object.clone());
        }
        let mut known = self.0.lock();
        if let Some(found) = known.iter().find(|known| known.to == version && known.object == *object) {
            return match &found.state {
                State::Pending(_) => None,
                State::Done(answer) => answer.clone(),
            };
        }
        let (converter, to, schema) = (converter.clone(), to.clone(), schema.clone());
        let given = object.clone();
        let mut conversion: BoxFuture<'static, Result<Value, Status>> =
            Box::pin(async move { convert_applied(&*converter, given, &to, &schema).await });
        match (&mut conversion).now_or_never() {
            Some(answer) => answer.ok(),
            None => {
                let state = State::Pending(conversion);
                known.push(Conversion { object: object.clone(), to: version, state });
                None
            }
        }
    }

    /// Awaits the outstanding conversions. Returns whether there were any.
    pub(super) async fn settle(&self) -> bool {
        let pending = std::mem::take(&mut *self.0.lock());
        let mut settled = Vec::with_capacity(pending.len());
        let mut waited = false;
        for mut conversion in pending {
            if let State::Pending(answer) = conversion.state {
                conversion.state = State::Done(answer.await.ok());
                waited = true;
            }
            settled.push(conversion);
        }
        self.0.lock().extend(settled);
        waited
    }
}
