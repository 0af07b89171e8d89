//! Reads objects live if the watches do not deliver the operator's writes to them.

use futures::{StreamExt, stream};
use wfe_core::name::{ExecutionId, ScheduleId};
use wfe_view::index::{Expected, Key, Kind, Live};

use super::objects::is;
use super::{Learned, PARALLEL_WRITES, Performer, Report, Result};

impl Performer {
    /// Reads the objects whose writes have been awaited for a long time.
    pub async fn read_awaited(self, key: Key, awaited: Vec<Expected>) -> (Key, Report) {
        let reads = stream::iter(awaited).map(|expected| self.read_one(expected));
        let mut report = Report::default();
        for read in reads.buffer_unordered(PARALLEL_WRITES).collect::<Vec<_>>().await {
            match read {
                Ok(learned) => report.learned.push(learned),
                Err(error) => report.errors.push(error),
            }
        }
        (key, report)
    }

    async fn read_one(&self, expected: Expected) -> Result<Learned> {
        let object = expected.object();
        let found = match object.kind {
            Kind::Execution => {
                let (namespace, name, uid) = (object.namespace.clone(), object.name.clone(), object.uid.clone());
                self.read_execution(&ExecutionId { namespace, name, uid }).await?
            }
            Kind::Schedule => {
                let (namespace, name, uid) = (object.namespace.clone(), object.name.clone(), object.uid.clone());
                self.read_schedule(&ScheduleId { namespace, name, uid }, None).await?
            }
            _ => self.read_run(&object.name).await?,
        };
        let is_there = found.is_some_and(|found| is(&found.metadata, &object.uid));
        let live = if is_there { Live::There } else { Live::Gone };
        tracing::warn!(%object, ?live, "no watch has delivered what was written; read live");
        Ok(Learned::Read(expected, live))
    }
}
