//! Pods and containers must not run as processes of a Windows node.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::Pod,
    setters::Setters,
};
use pintle_machinery::ValueExt;

pub(super) const CHECK: Check =
    Check { id: "windowsHostProcess", level: Level::Baseline, revisions: &[Revision::since(0, check)] };

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let setters = Setters::of(pod, |context| context.bool_at("windowsOptions.hostProcess"));
    let detail = || format!("{setters} must not set securityContext.windowsOptions.hostProcess=true");
    (!setters.is_empty()).then(|| Violation::new("hostProcess", detail()))
}
