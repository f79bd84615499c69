//! `SLOWLOG`: the slow commands of the tenant that asks.

use commands::SlowlogCommand;

use super::Visit;

/// Runs a `SLOWLOG` subcommand: a tenant sees and forgets its own slow commands only.
pub fn run(command: SlowlogCommand, visit: &mut Visit<'_>) {
    match command {
        SlowlogCommand::Get => get(visit),
        SlowlogCommand::Len => {
            let len = visit.tenant.slow_log.lock().len();
            visit.reply().count(len);
        }
        SlowlogCommand::Reset => {
            let gone = visit.tenant.slow_log.lock().reset();
            drop(gone);
            visit.reply().ok();
        }
    }
}

/// Entries that `SLOWLOG GET` returns when it is not told how many.
const COUNT: usize = 10;

fn get(visit: &mut Visit<'_>) {
    let count = match visit.args.len() {
        2 => Some(COUNT),
        3 => visit.int(2).and_then(|count| {
            if count == -1 {
                Some(usize::MAX)
            } else {
                usize::try_from(count).ok()
            }
        }),
        _ => {
            let name = visit.text(1);
            let text = format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try SLOWLOG HELP.");
            return visit.error(&text);
        }
    };
    let Some(count) = count else {
        return visit.error("ERR count should be greater than or equal to -1");
    };
    let tenant = std::sync::Arc::clone(visit.tenant);
    let entries = tenant.slow_log.lock().newest(count);
    let mut reply = visit.reply();
    reply.array(entries.len());
    for entry in entries {
        reply.array(6);
        reply.int(entry.id as i64);
        reply.int(entry.at_s as i64);
        reply.int(entry.took_us as i64);
        reply.array(entry.args.len());
        entry.args.iter().for_each(|arg| reply.bulk(arg));
        reply.bulk(entry.addr.as_bytes());
        reply.bulk(entry.name.as_bytes());
    }
}
