//! Converts each arriving object, once, to the small record that is stored.

use kube::api::DynamicObject;
use wfe_api::limits;
use wfe_core::name::Uid;
use wfe_core::residue::ResidueKind;
use wfe_core::run::Order;
use wfe_tekton::{belongs, observe_descendant, observe_run};

use crate::index::{Delivery, Kind};
use crate::observe::{observe_execution, observe_schedule};

/// The limit of a pause's reason, in characters: enough for a person to read. An annotation may have 256 kB.
const PAUSE_REASON: u32 = 1024;

/// Returns whether the operator uses an object. The execution namespace may contain many others.
#[must_use]
pub fn is_ours(kind: Kind, object: &DynamicObject) -> bool {
    match kind {
        Kind::Execution | Kind::Namespace | Kind::Schedule => true,
        Kind::Run | Kind::TaskRun | Kind::CustomRun | Kind::Pod => belongs(&object.metadata),
    }
}

/// Reads an existing object; `None` if the operator does not use it.
#[must_use]
pub fn read(kind: Kind, object: &DynamicObject, execution_namespace: &str) -> Option<Delivery> {
    let descendant = |residue| {
        let descendant = observe_descendant(residue, &object.metadata, &object.data)?;
        Some(Delivery::Descendant(kind, Box::new(descendant)))
    };
    match kind {
        Kind::Execution => {
            let record = observe_execution(object, execution_namespace)?;
            Some(Delivery::Execution(Box::new(record)))
        }
        // The index sets the order, because only the index knows what came before.
        Kind::Run => match observe_run(&object.metadata, &object.data, Order(0)) {
            Some((chain, run)) => Some(Delivery::Run(chain, Box::new(run))),
            None => descendant(ResidueKind::PipelineRun),
        },
        Kind::TaskRun => descendant(ResidueKind::TaskRun),
        Kind::CustomRun => descendant(ResidueKind::CustomRun),
        Kind::Pod => descendant(ResidueKind::Pod),
        Kind::Namespace => {
            let meta = &object.metadata;
            let why = meta.annotations.as_ref().and_then(|all| all.get(wfe_api::labels::ANNOTATION_PAUSED));
            Some(Delivery::Namespace {
                uid: Uid::new(meta.uid.as_deref()?),
                name: meta.name.as_deref()?.into(),
                paused: why.map(|why| limits::cut(why, PAUSE_REASON).into()),
                leaving: meta.deletion_timestamp.is_some(),
            })
        }
        Kind::Schedule => Some(Delivery::Schedule(Box::new(observe_schedule(object)?))),
    }
}
