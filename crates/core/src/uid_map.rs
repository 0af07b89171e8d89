//! A map from uid to record that uses little memory.
//!
//! Most of the tens of thousands of targets have a handful of records. A `BTreeMap` with one record reserves space for
//! eleven records. A free place of this map has room for only a uid and a pointer. An insert in the middle moves the
//! uids and pointers after it. Even with ten thousand of them, that costs less than parsing the object.

use std::ops::Index;

use crate::name::Uid;

/// Records by uid, in the order of the uids.
#[derive(Clone, Debug, PartialEq)]
pub struct UidMap<T> {
    sorted: Vec<(Uid, Box<T>)>,
}

impl<T> UidMap<T> {
    /// Returns a record.
    #[must_use]
    pub fn get(&self, uid: &Uid) -> Option<&T> {
        let (_, record) = self.sorted.get(self.position(uid).ok()?)?;
        Some(record)
    }

    /// Returns a record, mutably.
    pub fn get_mut(&mut self, uid: &Uid) -> Option<&mut T> {
        let place = self.position(uid).ok()?;
        let (_, record) = self.sorted.get_mut(place)?;
        Some(record)
    }

    /// Returns whether a record exists.
    #[must_use]
    pub fn contains_key(&self, uid: &Uid) -> bool {
        self.position(uid).is_ok()
    }

    /// Inserts a record, or replaces it.
    pub fn insert(&mut self, uid: Uid, record: T) {
        match self.position(&uid) {
            Ok(place) => *self.sorted[place].1 = record,
            Err(place) => self.insert_at(place, uid, record),
        }
    }

    fn insert_at(&mut self, place: usize, uid: Uid, record: T) {
        if self.sorted.is_empty() {
            self.sorted.reserve_exact(1); // many maps keep a single record
        }
        self.sorted.insert(place, (uid, Box::new(record)));
    }

    /// Returns a record, mutably; inserts a new one if none exists.
    pub fn get_or_insert_with(&mut self, uid: &Uid, new: impl FnOnce() -> T) -> &mut T {
        let place = self.position(uid).unwrap_or_else(|place| {
            self.insert_at(place, uid.clone(), new());
            place
        });
        &mut self.sorted[place].1
    }

    /// Removes a record, and returns it.
    pub fn remove(&mut self, uid: &Uid) -> Option<T> {
        let (_, record) = self.sorted.remove(self.position(uid).ok()?);
        if self.sorted.len() < self.sorted.capacity() / 4 {
            self.sorted.shrink_to(self.sorted.len() * 2); // after a storm
        }
        Some(*record)
    }

    /// Keeps the records for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Uid, &mut T) -> bool) {
        self.sorted.retain_mut(|(uid, record)| keep(uid, record));
    }

    /// Returns the records with their uids, in the order of the uids.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Uid, &T)> + Clone {
        self.sorted.iter().map(|(uid, record)| (uid, &**record))
    }

    /// Returns the records, in the order of their uids.
    #[must_use]
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &T> + Clone {
        self.sorted.iter().map(|(_, record)| &**record)
    }

    /// Returns the records with their uids, mutably.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Uid, &mut T)> {
        self.sorted.iter_mut().map(|(uid, record)| (&*uid, &mut **record))
    }

    /// Returns the records, mutably.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.sorted.iter_mut().map(|(_, record)| &mut **record)
    }

    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns whether the map has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    fn position(&self, uid: &Uid) -> Result<usize, usize> {
        self.sorted.binary_search_by(|(other, _)| other.cmp(uid))
    }
}

impl<T> Default for UidMap<T> {
    fn default() -> Self {
        Self { sorted: Vec::new() }
    }
}

impl<T> Extend<(Uid, T)> for UidMap<T> {
    fn extend<I: IntoIterator<Item = (Uid, T)>>(&mut self, records: I) {
        records.into_iter().for_each(|(uid, record)| self.insert(uid, record));
    }
}

impl<T> FromIterator<(Uid, T)> for UidMap<T> {
    fn from_iter<I: IntoIterator<Item = (Uid, T)>>(records: I) -> Self {
        let mut all = Self::default();
        all.extend(records);
        all
    }
}

impl<T> IntoIterator for UidMap<T> {
    type Item = (Uid, T);
    type IntoIter = std::iter::Map<std::vec::IntoIter<(Uid, Box<T>)>, fn((Uid, Box<T>)) -> (Uid, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.sorted.into_iter().map(|(uid, record)| (uid, *record))
    }
}

impl<T> Index<&Uid> for UidMap<T> {
    type Output = T;

    /// Returns a record that must exist.
    fn index(&self, uid: &Uid) -> &T {
        self.get(uid).unwrap_or_else(|| unreachable!("asked for {uid}, which is not there"))
    }
}

/// A map from uid to record, for records that most targets do not have: an empty map is one pointer.
#[derive(Clone, Debug, PartialEq)]
pub struct SmallMap<T>(Option<Box<UidMap<T>>>);

impl<T> SmallMap<T> {
    /// Returns a record.
    #[must_use]
    pub fn get(&self, uid: &Uid) -> Option<&T> {
        self.0.as_ref()?.get(uid)
    }

    /// Returns a record, mutably.
    pub fn get_mut(&mut self, uid: &Uid) -> Option<&mut T> {
        self.0.as_mut()?.get_mut(uid)
    }

    /// Inserts a record, or replaces it.
    pub fn insert(&mut self, uid: Uid, record: T) {
        self.0.get_or_insert_default().insert(uid, record);
    }

    /// Removes a record, and returns it.
    pub fn remove(&mut self, uid: &Uid) -> Option<T> {
        let record = self.0.as_mut()?.remove(uid);
        self.0.take_if(|all| all.is_empty());
        record
    }

    /// Keeps the records for which `stays` returns true.
    pub fn retain(&mut self, stays: impl Fn(&Uid) -> bool) {
        if let Some(all) = &mut self.0 {
            all.retain(|uid, _| stays(uid));
        }
        self.0.take_if(|all| all.is_empty());
    }

    /// Returns the records, in the order of their uids.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|all| all.values())
    }

    /// Returns the records, mutably.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flat_map(|all| all.values_mut())
    }

    /// Returns whether the map has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl<T> Default for SmallMap<T> {
    fn default() -> Self {
        Self(None)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(steps in prop::collection::vec((0..40_u8, prop::option::of(any::<u8>())), 0..200)) {
            let (mut by_uid, mut map) = (UidMap::default(), BTreeMap::new());
            for (uid, record) in steps {
                let uid = Uid::new(&uid.to_string());
                if let Some(record) = record {
                    by_uid.insert(uid.clone(), record);
                    map.insert(uid.clone(), record);
                } else {
                    prop_assert_eq!(by_uid.remove(&uid), map.remove(&uid));
                }
                prop_assert_eq!(by_uid.get(&uid), map.get(&uid));
            }
            prop_assert!(by_uid.iter().eq(map.iter()), "{:?} is not {:?}", by_uid, map);
        }
    }
}
