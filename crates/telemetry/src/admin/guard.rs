//! Who may ask the admin address.
//!
//! * The `Host` of a request must be this machine's loopback, the address listened on, or a name
//!   that was configured. A page from elsewhere can have its own name resolve to this address (DNS
//!   rebinding) and then read the answers as its own; its name is still in `Host`.
//! * Where there is a token, a request must bring it: as a bearer's (RFC 6750), or as the password
//!   of any user (RFC 7617), which browsers ask for and send by themselves, also with streams of
//!   events.
//!
//! `/livez` and `/readyz` are open to all: probes of supervisors carry neither.

use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State as Extract};
use axum::http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use base64ct::{Base64, Encoding};
use parking_lot::RwLock;

use super::routes::error;

/// Open to all.
const OPEN: [&str; 2] = ["/livez", "/readyz"];

/// Both ways to bring a token.
const CHALLENGE: HeaderValue = HeaderValue::from_static(
    "Bearer realm=\"entremet\", Basic realm=\"entremet\", charset=\"UTF-8\"",
);

/// A secret that requests must bring.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes the text.
    pub fn new(text: &str) -> Self {
        Self(text.to_string())
    }

    /// The text, to be sent.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares all bytes whatever the first ones are, so that the time tells the length only.
    fn is(&self, other: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let pairs = own.iter().zip(other);
        let differ = pairs.fold(0, |differ, (a, b)| black_box(differ | (a ^ b)));
        own.len() == other.len() && differ == 0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What is asked of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Names by which the admin address may be called, beside loopback's and its own address.
    pub names: Vec<String>,
    /// What a request must bring; none: nothing.
    pub token: Option<Token>,
}

/// The guard of one admin address.
pub(super) struct Guard {
    listen: IpAddr,
    access: RwLock<Access>,
}

impl Guard {
    pub(super) fn new(listen: IpAddr, access: Access) -> Self {
        let access = RwLock::new(access);
        Self { listen, access }
    }

    pub(super) fn set(&self, access: Access) {
        *self.access.write() = access;
    }

    /// Whether one may call us so; `host` may have a port.
    fn is_called(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let bare = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(name).parse::<IpAddr>() {
            // An address cannot be made to resolve to another: where all are listened on, any may
            // be ours.
            return address.is_loopback() || address == self.listen || self.listen.is_unspecified();
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        let same = |other: &str| name.eq_ignore_ascii_case(other);
        same("localhost") || self.access.read().names.iter().any(|other| same(other))
    }

    /// What is wrong with a request: the status, what, and what to do.
    fn objection(&self, request: &Request) -> Option<(StatusCode, String, &'static str)> {
        if OPEN.contains(&request.uri().path()) {
            return None;
        }
        for host in hosts(request) {
            if !self.is_called(host.unwrap_or_default()) {
                let what = format!("this is not {:?}", host.unwrap_or("what was called"));
                let advice = "call it by its address, or name it in server.admin_names";
                return Some((StatusCode::FORBIDDEN, what, advice));
            }
        }
        let access = self.access.read();
        let token = access.token.as_ref()?;
        if brought(request.headers()).is_some_and(|brought| token.is(&brought)) {
            return None;
        }
        let what = "a token must be brought, and is missing or wrong".to_string();
        let advice = "send Authorization: Bearer TOKEN, or the token as the password of any user";
        Some((StatusCode::UNAUTHORIZED, what, advice))
    }
}

/// The names that a request calls us by: what is no text is none.
fn hosts(request: &Request) -> impl Iterator<Item = Option<&str>> {
    let absolute = request
        .uri()
        .authority()
        .map(|authority| Some(authority.as_str()));
    let headers = request.headers().get_all(HOST).iter();
    absolute
        .into_iter()
        .chain(headers.map(|host| host.to_str().ok()))
}

/// The token of a request.
fn brought(headers: &HeaderMap) -> Option<Vec<u8>> {
    let (scheme, rest) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("Bearer") {
        return Some(rest.trim().as_bytes().to_vec());
    }
    if !scheme.eq_ignore_ascii_case("Basic") {
        return None;
    }
    let pair = Base64::decode_vec(rest.trim()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

/// Turns away who may not ask.
pub(super) async fn stand(
    Extract(guard): Extract<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let Some((status, what, advice)) = guard.objection(&request) else {
        return next.run(request).await;
    };
    let place = request.uri().path().to_string();
    let mut response = error(status, what, place, advice.to_string());
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(listen: &str, names: &[&str], token: Option<&str>) -> Guard {
        let access = Access {
            names: names.iter().map(ToString::to_string).collect(),
            token: token.map(Token::new),
        };
        Guard::new(listen.parse().unwrap(), access)
    }

    #[test]
    fn it_is_called_by_loopback_by_its_address_and_by_its_names() {
        let guard = guard("10.0.0.7", &["metrics.example.org"], None);
        for host in [
            "localhost",
            "LocalHost:9380",
            "127.0.0.1:9380",
            "127.9.9.9",
            "[::1]:9380",
            "[::1]",
            "10.0.0.7:9380",
            "Metrics.Example.ORG:80",
            "metrics.example.org.",
        ] {
            assert!(guard.is_called(host), "{host}");
        }
        for host in [
            "",
            "evil.example.org",
            "evil.example.org:9380",
            "10.0.0.8",
            "[2001:db8::1]:9380",
            "localhost.evil.org",
            "x.metrics.example.org",
            "127.0.0.1.evil.org:9380",
            "127.0.0.1:9380.evil.org",
            "0.0.0.0:9380",
        ] {
            assert!(!guard.is_called(host), "{host}");
        }
        assert!(self::guard("0.0.0.0", &[], None).is_called("10.0.0.8:9380"));
        assert!(!self::guard("0.0.0.0", &[], None).is_called("evil.example.org"));
    }

    fn request(path: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = axum::http::Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(axum::body::Body::empty()).unwrap()
    }

    fn status(guard: &Guard, path: &str, headers: &[(&str, &str)]) -> u16 {
        guard
            .objection(&request(path, headers))
            .map_or(200, |(status, _, _)| status.as_u16())
    }

    #[test]
    fn every_name_of_a_request_must_be_ours() {
        let guard = guard("127.0.0.1", &[], None);
        assert_eq!(status(&guard, "/metrics", &[("host", "localhost")]), 200);
        assert_eq!(
            status(&guard, "/metrics", &[]),
            200,
            "no browser leaves it out"
        );
        assert_eq!(status(&guard, "/metrics", &[("host", "evil.org")]), 403);
        assert_eq!(
            status(
                &guard,
                "/metrics",
                &[("host", "localhost"), ("host", "evil.org")]
            ),
            403
        );
        assert_eq!(
            status(&guard, "http://evil.org/metrics", &[("host", "localhost")]),
            403
        );
        assert_eq!(status(&guard, "/livez", &[("host", "evil.org")]), 200);
    }

    #[test]
    fn a_token_is_brought_either_way() {
        let guard = guard("127.0.0.1", &[], Some("sixteen-letters!"));
        let with = |value: &str| status(&guard, "/api/live", &[("authorization", value)]);
        assert_eq!(with("Bearer sixteen-letters!"), 200);
        assert_eq!(with("bearer  sixteen-letters! "), 200);
        let basic = |pair: &str| format!("Basic {}", Base64::encode_string(pair.as_bytes()));
        assert_eq!(with(&basic("anybody:sixteen-letters!")), 200);
        assert_eq!(with(&basic(":sixteen-letters!")), 200);
        for wrong in [
            "Bearer sixteen-letters",
            "Bearer sixteen-letters!!",
            "Bearer ",
            "Bearer",
            "sixteen-letters!",
            "Basic !!",
            &basic("sixteen-letters!"),
            &basic("anybody:wrong"),
            "Digest sixteen-letters!",
        ] {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        assert_eq!(status(&guard, "/api/live", &[]), 401);
        assert_eq!(
            (
                status(&guard, "/livez", &[]),
                status(&guard, "/readyz", &[])
            ),
            (200, 200)
        );
        assert_eq!(status(&guard, "/livez/../metrics", &[]), 401);
        guard.set(Access::default());
        assert_eq!(status(&guard, "/api/live", &[]), 200);
    }

    #[test]
    fn a_token_does_not_show() {
        assert_eq!(format!("{:?}", Token::new("secret")), "Token(…)");
        let token = Token::new("secret");
        assert!(
            token.is(b"secret") && !token.is(b"secreT") && !token.is(b"secret2") && !token.is(b"")
        );
    }
}
