//! One front before a cluster, as it says itself, and where clients reach it.

use std::fmt;
use std::net::SocketAddr;

use crate::elsewhere::bracketed;

/// Something for clients without TLS, and the same for clients with TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Both<T> {
    /// For clients without TLS.
    pub plain: T,
    /// For clients with TLS.
    pub tls: T,
}

impl<T> Both<T> {
    /// What `make` makes of it that clients have TLS, or have not.
    pub fn each(mut make: impl FnMut(bool) -> T) -> Self {
        Self {
            plain: make(false),
            tls: make(true),
        }
    }

    /// For clients with TLS or for those without.
    pub fn of(&self, tls: bool) -> &T {
        match tls {
            true => &self.tls,
            false => &self.plain,
        }
    }

    /// The one and the other.
    pub fn all(&self) -> [&T; 2] {
        [&self.plain, &self.tls]
    }
}

/// A host and a port, as clients are told them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A name, or an address without brackets.
    pub host: String,
    /// The port, not 0.
    pub port: u16,
}

impl Endpoint {
    /// `HOST:PORT`; an address of IPv6 has brackets. None: it is none.
    pub fn read(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|v6| v6.strip_suffix(']'));
        let host = match bare {
            Some(v6) => v6,
            None if host.contains(':') => return None,
            None => host,
        };
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let good = !host.is_empty() && !host.contains(|letter: char| letter.is_whitespace());
        good.then(|| Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(at: SocketAddr) -> Self {
        Self {
            host: at.ip().to_string(),
            port: at.port(),
        }
    }
}

/// As clients of clusters read it: IPv6 without brackets.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// One front, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name: 40 hexadecimal digits.
    pub id: String,
    /// Where cluster-aware clients reach it: at one place at least.
    pub at: Both<Option<Endpoint>>,
    /// The node that it stands before, as the cluster calls it; none: no certain one.
    pub node: Option<String>,
}

impl Peer {
    /// Its entry, with a number that grows: `NUMBER/TLS HOST PORT NODE`. `/TLS` is the place for
    /// clients with TLS, if there is one. Fronts that do not know of it take it for a part of the
    /// number, of which they see only whether it changes. One that has no other place they take for
    /// no front: they would send clients without TLS there.
    pub fn entry(&self, beat: u64) -> String {
        let tls = self.at.tls.as_ref();
        let tls = tls.map_or_else(String::new, |at| {
            format!("/{}:{}", bracketed(&at.host), at.port)
        });
        let (host, port) = match &self.at.plain {
            Some(at) => (at.host.as_str(), at.port.to_string()),
            None => ("-", "-".to_owned()),
        };
        let node = self.node.as_deref().unwrap_or("-");
        format!("{beat}{tls} {host} {port} {node}")
    }

    /// The front of this name whose entry says `text`, and its number. None: it is no entry.
    pub fn read(id: &str, text: &str) -> Option<(Self, String)> {
        let mut words = text.split(' ');
        let (first, host, port, node) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        let (beat, tls) = match first.split_once('/') {
            Some((beat, tls)) => (beat, Some(Endpoint::read(tls)?)),
            None => (first, None),
        };
        let plain = match (host, port) {
            ("-", "-") => None,
            _ => Some(Endpoint {
                host: host.to_owned(),
                port: port.parse().ok()?,
            }),
        };
        let named = id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let reached = plain.is_some() || tls.is_some();
        let peer = Self {
            id: id.to_owned(),
            at: Both { plain, tls },
            node: (node != "-").then(|| node.to_owned()),
        };
        let whole = named && reached && !host.is_empty() && words.next().is_none();
        whole.then(|| (peer, beat.to_owned()))
    }
}

/// Where it is, for people.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = self.at.plain.iter().map(ToString::to_string);
        let tls = self.at.tls.iter().map(|at| format!("{at} (TLS)"));
        f.write_str(&plain.chain(tls).collect::<Vec<_>>().join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn peer(plain: Option<&str>, tls: Option<&str>) -> Peer {
        Peer {
            id: ID.into(),
            at: Both {
                plain: plain.and_then(Endpoint::read),
                tls: tls.and_then(Endpoint::read),
            },
            node: Some("n:3".into()),
        }
    }

    #[test]
    fn an_endpoint_has_a_host_and_a_port() {
        let some = |host: &str, port| {
            Some(Endpoint {
                host: host.to_owned(),
                port,
            })
        };
        assert_eq!(Endpoint::read("a.example:7"), some("a.example", 7));
        assert_eq!(Endpoint::read("[::1]:7"), some("::1", 7));
        for wrong in ["a", ":7", "a:", "a:0", "a:x", "::1:7", "a b:7", "[]:7"] {
            assert_eq!(Endpoint::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_entry_says_where_a_front_is_and_what_it_stands_before() {
        for (plain, tls, text, said) in [
            (Some("h:1"), None, "9 h 1 n:3", "h:1"),
            (
                Some("h:1"),
                Some("t:2"),
                "9/t:2 h 1 n:3",
                "h:1 and t:2 (TLS)",
            ),
            (None, Some("[::1]:2"), "9/[::1]:2 - - n:3", "::1:2 (TLS)"),
        ] {
            let peer = peer(plain, tls);
            assert_eq!(peer.entry(9), text);
            assert_eq!(peer.to_string(), said);
            assert_eq!(Peer::read(ID, text), Some((peer, "9".to_owned())));
        }
    }

    #[test]
    fn what_is_no_entry_is_not_taken_for_a_front() {
        for (id, text) in [
            ("1", "9 h 7001 -"),
            (ID, "9 h x -"),
            (ID, "9 h 7001"),
            (ID, "9 h 7001 - more"),
            (ID, "9  7001 -"),
            (ID, "9 - - -"),
            (ID, "9/ h 7001 -"),
            (ID, "9/t h 7001 -"),
        ] {
            assert_eq!(Peer::read(id, text), None, "{text}");
        }
    }

    /// They read four words, and see of the first only whether it is another.
    #[test]
    fn fronts_of_the_version_before_read_a_new_entry() {
        let old = |peer: &Peer, beat| {
            let entry = peer.entry(beat);
            let words: Vec<&str> = entry.split(' ').collect();
            let [beat, host, port, node] = words[..] else {
                panic!("{entry}");
            };
            let place = (host.to_owned(), port.parse::<u16>().ok()?, node.to_owned());
            Some((beat.to_owned(), place))
        };
        let both = peer(Some("h:1"), Some("t:2"));
        let (one, other) = (
            old(&both, 9).expect("a front"),
            old(&both, 10).expect("a front"),
        );
        assert_eq!(one.1, ("h".to_owned(), 1, "n:3".to_owned()));
        assert_eq!(one.1, other.1);
        assert_ne!(one.0, other.0, "it is there");
        assert_eq!(old(&peer(None, Some("t:2")), 9), None);
    }
}
