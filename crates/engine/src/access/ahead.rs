//! Reads for a command that others work on: see [`crate::keyspace::ahead`].

use crate::access::{Access, View};
use crate::keyspace::latch::Held;
use crate::keyspace::{ahead::Ahead, Keyspace};
use crate::meter::{Meter, Site};
use crate::naming::Moment;
use crate::Entry;

impl Ahead {
    /// Reads the next key for the command. `false`: there is none, or it is not worth it any more.
    pub fn read(&self) -> bool {
        let Some((keyspace, name, at)) = self.next() else {
            return false;
        };
        self.tell(at, read(&keyspace, &name));
        true
    }
}

/// What the database has under a name, and the epoch of the log before it was asked. `None`: that
/// says nothing, or it is for the command to tell what is wrong.
fn read(keyspace: &Keyspace, name: &[u8]) -> Option<(Option<Entry>, u64)> {
    // The database may not have been cleared yet.
    if keyspace.log.clearing().is_some() {
        return None;
    }
    let view = View::Latched(&Held::Nothing, None);
    let meter = Meter::new(Site::Handler);
    let mut access = Access::new(keyspace, 0, view, meter, Moment::default());
    let entry = access.read_object(name).ok()?;
    Some((entry, access.epoch))
}
