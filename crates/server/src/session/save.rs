//! `SAVE`, `BGSAVE`, `LASTSAVE`: the tenant's writes are in its log when they are answered, and on
//! the disk when the log is synced. `SAVE` syncs it now, whatever `sync` the tenant has.

use super::figures::{last_save_s, stored};
use super::Visit;

/// Has the tenant's log synced. `false`: the reply tells why it was not.
fn sync(visit: &mut Visit<'_>) -> bool {
    // Nothing was written since the start if its data are not open.
    let Some(keyspace) = visit.tenant.keyspace() else {
        return true;
    };
    match keyspace.save() {
        Ok(true) => true,
        Ok(false) => {
            visit.error("ERR Background save already in progress");
            false
        }
        Err(error) => {
            let text = visit.shared.told(visit.tenant, &error);
            visit.error(&text);
            false
        }
    }
}

/// `SAVE`
pub fn save(visit: &mut Visit<'_>) {
    if sync(visit) {
        visit.reply().ok();
    }
}

/// `BGSAVE [SCHEDULE]`: it is done when it is answered. Whoever waits for `LASTSAVE` to change
/// waits no longer than for the next second.
pub fn bgsave(visit: &mut Visit<'_>) {
    match visit.args.len() {
        1 => {}
        2 if visit.is(1, "SCHEDULE") => {}
        _ => return visit.syntax_error(),
    }
    if sync(visit) {
        visit.reply().simple("Background saving started");
    }
}

/// `LASTSAVE`
pub fn lastsave(visit: &mut Visit<'_>) {
    let stored = stored(visit.tenant);
    let at_s = last_save_s(visit.shared, &stored, visit.now_ms);
    visit.reply().int(at_s as i64);
}
