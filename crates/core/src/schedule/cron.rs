//! stub
use crate::Time;
#[derive(Clone, Debug, PartialEq)]
pub struct Cron;
impl Cron {
    pub fn first_after(&self, time: Time) -> Option<Time> {
        Some(time)
    }
    pub fn last_in(&self, _after: Time, until: Time) -> Option<(Time, u32)> {
        Some((until, 1))
    }
}
