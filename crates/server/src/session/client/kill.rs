//! `CLIENT KILL`: closing connections of one's own tenant.

use std::sync::Arc;

use resp::{is, parse_i64};

use super::{own, unknown_type, Type};
use crate::session::Visit;
use crate::tenants::Client;

/// Which connections `CLIENT KILL` means.
struct Victims {
    id: Option<u64>,
    addr: Option<Vec<u8>>,
    local_addr: Option<Vec<u8>>,
    of_type: Option<Type>,
    age_s_min: u64,
    skip_me: bool,
}

impl Victims {
    fn include(&self, client: &Client, now_ms: u64) -> bool {
        let is_at = |wanted: &Option<Vec<u8>>, addr: std::net::SocketAddr| {
            wanted
                .as_ref()
                .is_none_or(|wanted| addr.to_string().as_bytes() == wanted)
        };
        self.of_type.is_none_or(|of_type| of_type.is_of(client))
            && self.id.is_none_or(|id| client.id == id)
            && is_at(&self.addr, client.addr)
            && is_at(&self.local_addr, client.local_addr)
            && now_ms.saturating_sub(client.created_ms) >= self.age_s_min.saturating_mul(1_000)
    }
}

/// `CLIENT KILL addr`, `CLIENT KILL filter value …`
pub(super) fn kill(visit: &mut Visit<'_>) {
    let old_form = visit.args.len() == 3;
    let victims = if old_form {
        // The old form names one address and may mean the caller itself.
        Some(Victims {
            addr: Some(visit.arg(2).to_vec()),
            skip_me: false,
            ..Victims::everybody()
        })
    } else {
        victims(visit)
    };
    let Some(victims) = victims else { return };
    let me = Arc::clone(visit.client);
    let now_ms = visit.shared.steady_ms();
    let mut killed = 0;
    for client in own(visit).into_values() {
        let mine = client.id == me.id;
        if (mine && victims.skip_me) || !victims.include(&client, now_ms) {
            continue;
        }
        killed += 1;
        if mine {
            // The reply is still to be sent.
            visit.state.closing = true;
        } else {
            visit.shared.kill(&client);
        }
    }
    match (old_form, killed) {
        (true, 0) => visit.error("ERR No such client"),
        (true, _) => visit.reply().ok(),
        (false, _) => visit.reply().int(killed),
    }
}

impl Victims {
    fn everybody() -> Self {
        Self {
            id: None,
            addr: None,
            local_addr: None,
            of_type: None,
            age_s_min: 0,
            skip_me: true,
        }
    }
}

/// Reads the filters of the new form; none: the error is written.
fn victims(visit: &mut Visit<'_>) -> Option<Victims> {
    let mut victims = Victims::everybody();
    for at in (2..visit.args.len()).step_by(2) {
        let Some(value) = visit.args.find(at + 1) else {
            visit.syntax_error();
            return None;
        };
        if visit.is(at, "ID") {
            let id = parse_i64(value).filter(|id| *id > 0);
            let Some(id) = id else {
                visit.error("ERR client-id should be greater than 0");
                return None;
            };
            victims.id = Some(id as u64);
        } else if visit.is(at, "TYPE") {
            let Some(named) = Type::named(value) else {
                unknown_type(visit, at + 1);
                return None;
            };
            victims.of_type = Some(named);
        } else if visit.is(at, "ADDR") {
            victims.addr = Some(value.to_vec());
        } else if visit.is(at, "LADDR") {
            victims.local_addr = Some(value.to_vec());
        } else if visit.is(at, "USER") {
            if value != visit.tenant.name.as_bytes() {
                let user = visit.text(at + 1);
                visit.error(&format!("ERR No such user '{user}'"));
                return None;
            }
        } else if visit.is(at, "MAXAGE") {
            victims.age_s_min = max_age(visit, value)?;
        } else if visit.is(at, "SKIPME") && (is(value, "YES") || is(value, "NO")) {
            victims.skip_me = is(value, "YES");
        } else {
            visit.syntax_error();
            return None;
        }
    }
    Some(victims)
}

/// Redis 7.4's texts.
fn max_age(visit: &mut Visit<'_>, value: &[u8]) -> Option<u64> {
    match parse_i64(value) {
        Some(age @ 1..) => return Some(age as u64),
        Some(_) => visit.error("ERR maxage should be greater than 0"),
        None => visit.error("ERR maxage is not an integer or out of range"),
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::clients;
    use super::*;

    #[test]
    fn victims_are_those_whom_every_filter_means() {
        let all = clients();
        let chosen = |victims: Victims| -> Vec<u64> {
            all.iter()
                .filter(|c| victims.include(c, 3_000))
                .map(|c| c.id)
                .collect()
        };
        assert_eq!(chosen(Victims::everybody()), [1, 2, 3]);
        all[1].subscribes([2, 0, 0]);
        for (of_type, ids) in [
            (Type::Normal, &[1, 3][..]),
            (Type::PubSub, &[2]),
            (Type::Replication, &[]),
        ] {
            let of_type = Some(of_type);
            let victims = Victims {
                of_type,
                ..Victims::everybody()
            };
            assert_eq!(chosen(victims), ids);
        }
        assert_eq!(
            chosen(Victims {
                id: Some(2),
                ..Victims::everybody()
            }),
            [2]
        );
        let addr = Some(b"10.0.0.1:3".to_vec());
        assert_eq!(
            chosen(Victims {
                addr: addr.clone(),
                ..Victims::everybody()
            }),
            [3]
        );
        assert!(chosen(Victims {
            addr,
            id: Some(1),
            ..Victims::everybody()
        })
        .is_empty());
        assert_eq!(
            chosen(Victims {
                age_s_min: 2,
                ..Victims::everybody()
            }),
            [1, 2, 3]
        );
        assert!(chosen(Victims {
            age_s_min: 3,
            ..Victims::everybody()
        })
        .is_empty());
    }
}
