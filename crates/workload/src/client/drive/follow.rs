//! What a run does beside that its fronts are a cluster: it follows what moves.

use super::Drive;
use crate::client::scout::Question;
use crate::error::WorkloadError;

impl Drive {
    /// Sends again what fronts sent on, and has the maps kept true.
    pub(super) fn follow(&mut self) -> Result<(), WorkloadError> {
        let Some(scout) = &mut self.scout else {
            return Ok(());
        };
        let now_ns = self.clock.now_ns();
        let (fleet, recorder) = (&mut self.fleet, &mut self.recorder);
        for moved in fleet.take_moved() {
            self.moved += 1;
            scout.doubt(moved.whose.stream);
            self.lanes[moved.whose.stream].follow(moved, fleet, now_ns, recorder)?;
        }
        for stream in fleet.take_lost() {
            scout.doubt(stream);
        }
        while let Some((stream, map)) = scout.found(now_ns) {
            self.lanes[stream].clients().learn(map, fleet, recorder)?;
        }
        let lanes = &mut self.lanes;
        scout.ask(now_ns, |stream| {
            let mut fronts = lanes[stream].clients().fronts().to_vec();
            fronts.push(fleet.goal().first());
            Question {
                stream,
                identity: fleet.identity(stream).clone(),
                fronts,
            }
        });
        Ok(())
    }
}
