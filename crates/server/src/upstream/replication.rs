//! What a node says of its replication (`INFO replication`).

/// How far a node is in which history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// It is a master.
    pub master: bool,
    /// The name of the history.
    pub history: String,
    /// How far it is: what a master has written, and what a replica has done of it.
    pub offset: u64,
}

impl Replication {
    /// None: it is a replica whose link to its master is not up, or something else.
    pub fn read(info: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        let master = field("role")? == "master";
        if !master && field("master_link_status")? != "up" {
            return None;
        }
        let offset = field(match master {
            true => "master_repl_offset",
            false => "slave_repl_offset",
        });
        Some(Self {
            master,
            history: field("master_replid")?.to_owned(),
            offset: offset?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_say_how_far_they_are() {
        let master = "# Replication\r\nrole:master\r\nconnected_slaves:1\r\nmaster_replid:abc\r\n\
            master_replid2:000\r\nmaster_repl_offset:812\r\nsecond_repl_offset:-1\r\n";
        let read = Replication::read(master).expect("a master");
        assert_eq!(
            (read.master, read.history.as_str(), read.offset),
            (true, "abc", 812)
        );
        let replica = "role:slave\r\nmaster_host:127.0.0.1\r\nmaster_link_status:up\r\nslave_read_repl_offset:900\r\n\
            slave_repl_offset:700\r\nmaster_replid:abc\r\nmaster_repl_offset:700\r\n";
        let read = Replication::read(replica).expect("a replica");
        assert_eq!(
            (read.master, read.history.as_str(), read.offset),
            (false, "abc", 700)
        );
        let down = replica.replace("status:up", "status:down");
        assert_eq!(Replication::read(&down), None);
        let new = replica.replace("slave_repl_offset:700", "slave_repl_offset:-1");
        assert_eq!(Replication::read(&new), None);
        assert_eq!(Replication::read(""), None);
    }
}
