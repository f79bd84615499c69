//! The URL of an engine, as its clients write it.

use std::str::FromStr;

/// Where an engine listens that does not say.
const PORT: u16 = 6379;

/// What a URL says of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineUrl {
    /// `host:port`; of a cluster some nodes.
    pub addresses: Vec<String>,
    /// It is a cluster.
    pub cluster: bool,
    /// It is reached by TLS.
    pub tls: bool,
    /// Its user; none: the default one.
    pub user: Option<String>,
    /// The password; none: it asks for none.
    pub password: Option<String>,
}

/// `redis://[[USER]:PASSWORD@]HOST[:PORT][/0]`; for a cluster `redis-cluster://`, and several of
/// `HOST[:PORT]` with commas between. With `rediss` in the place of `redis` by TLS.
impl FromStr for EngineUrl {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or("it does not begin with redis://")?;
        let (cluster, tls) = match scheme {
            "redis" | "valkey" => (false, false),
            "rediss" | "valkeys" => (false, true),
            "redis-cluster" | "valkey-cluster" => (true, false),
            "rediss-cluster" | "valkeys-cluster" => (true, true),
            _ => return Err(format!("{scheme} is no protocol that is spoken here")),
        };
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let place = match place.split_once('/') {
            None | Some((_, "" | "0")) => place.split('/').next().unwrap_or_default(),
            Some(_) => return Err("tenants before an engine have its database 0".into()),
        };
        let (user, password) = match login.map(|login| login.split_once(':')) {
            None => (None, None),
            Some(Some((user, password))) => (
                Some(decoded(user)?).filter(|user| !user.is_empty()),
                Some(decoded(password)?),
            ),
            Some(None) => return Err("there is a user without a password".into()),
        };
        let places: Vec<&str> = match cluster {
            true => place.split(',').collect(),
            false => vec![place],
        };
        let addresses = places.into_iter().map(address);
        Ok(Self {
            addresses: addresses.collect::<Result<_, _>>()?,
            cluster,
            tls,
            user,
            password,
        })
    }
}

/// `HOST[:PORT]` with its port.
pub(super) fn address(place: &str) -> Result<String, String> {
    let bare = place.strip_prefix('[').and_then(|v6| v6.split_once(']'));
    let (host, port) = match (bare, place.rsplit_once(':')) {
        (Some((_, "")), _) | (None, None) => (place, None),
        (_, Some((host, port))) => (host, Some(port)),
        (Some(_), None) => (place, None),
    };
    let port = match port {
        None => PORT,
        Some(port) => port.parse().map_err(|_| format!("{port} is no port"))?,
    };
    if host.is_empty() || host.contains(',') {
        return Err("it names no host".into());
    }
    Ok(format!("{host}:{port}"))
}

/// `%xx` of a URL as what it stands for.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let hex = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits.get(..2)?).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        rest = match first {
            b'%' => {
                bytes.push(hex(behind).ok_or("% stands before two hexadecimal digits")?);
                &behind[2..]
            }
            byte => {
                bytes.push(*byte);
                behind
            }
        };
    }
    String::from_utf8(bytes).map_err(|_| "its login is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<(String, Option<String>, Option<String>), String> {
        let url: EngineUrl = url.parse()?;
        Ok((url.addresses.join(","), url.user, url.password))
    }

    #[test]
    fn a_scheme_says_what_it_is_and_whether_it_is_reached_by_tls() {
        for (scheme, cluster, tls) in [
            ("redis", false, false),
            ("valkey", false, false),
            ("rediss", false, true),
            ("valkeys", false, true),
            ("redis-cluster", true, false),
            ("valkey-cluster", true, false),
            ("rediss-cluster", true, true),
            ("valkeys-cluster", true, true),
        ] {
            let url: EngineUrl = format!("{scheme}://host").parse().expect(scheme);
            assert_eq!((url.cluster, url.tls), (cluster, tls), "{scheme}");
        }
    }

    #[test]
    fn a_url_says_where_the_engine_is_and_how_to_log_in() {
        let some = |text: &str| Some(text.to_owned());
        for (url, address, user, password) in [
            ("redis://host", "host:6379", None, None),
            ("redis://host:1/", "host:1", None, None),
            ("redis://host:1/0", "host:1", None, None),
            ("valkey://[::1]", "[::1]:6379", None, None),
            ("redis://[::1]:7", "[::1]:7", None, None),
            ("redis://:p%40ss@host", "host:6379", None, some("p@ss")),
            ("redis://u:a:b@c@host:2", "host:2", some("u"), some("a:b@c")),
            (
                "redis-cluster://:p@a,b:2,[::1]",
                "a:6379,b:2,[::1]:6379",
                None,
                some("p"),
            ),
        ] {
            assert_eq!(read(url), Ok((address.to_owned(), user, password)), "{url}");
        }
        for url in [
            "host:6379",
            "http://host",
            "redisss://host",
            "rediss://host/#insecure",
            "rediss://a,b",
            "redis://",
            "redis://:1",
            "redis://host:x",
            "redis://host/3",
            "redis://a,b",
            "redis-cluster://a,",
            "redis://user@host",
            "redis://u:%zz@host",
        ] {
            assert!(read(url).is_err(), "{url}");
        }
    }
}
