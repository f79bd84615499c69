//! What a core writes down for those who ask from elsewhere.

use policy::Nanos;

use super::Core;
use crate::shared::{Entry, Seen};

impl Core {
    /// Writes down what the stages of this core observe of everybody who was ever let through here.
    pub(super) fn post(&mut self, now: Nanos) {
        let Some(mut entries) = self.shared.board.of(self.id) else {
            return;
        };
        entries.clear();
        entries.extend(self.principals.ids().filter_map(|principal| {
            let request: Seen = self.lines.requests.observe(now, principal)?.into();
            let handler = self
                .handlers
                .observe(now, principal)
                .map(Seen::from)
                .unwrap_or_default();
            (request.admitted + request.waiting > 0).then_some(Entry {
                principal,
                request,
                handler,
            })
        }));
        for entry in entries.iter() {
            let occupied_ns = entry.request.occupied_ns;
            self.principals.occupied(entry.principal, occupied_ns);
        }
    }
}
