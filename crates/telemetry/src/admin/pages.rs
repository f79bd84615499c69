//! The dashboard's files, carried inside the binary: nothing to install, nothing to find at run
//! time.

use axum::extract::Path;
use axum::http::{header, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::routes::error;

/// Name under `/ui/`, type, content.
type File = (&'static str, &'static str, &'static str);

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! file {
    ($name:literal, $kind:expr) => {
        file!($name, $kind, $name)
    };
    ($name:literal, $kind:expr, $path:literal) => {
        (
            $name,
            $kind,
            include_str!(concat!("../../../../web/", $path)),
        )
    };
}

const INDEX: File = file!("index.html", HTML);

const FILES: &[File] = &[
    file!("uPlot.min.js", SCRIPT, "vendor/uPlot.iife.min.js"),
    file!("uPlot.min.css", STYLE, "vendor/uPlot.min.css"),
    file!("plot-marks.js", SCRIPT),
    file!("plot.js", SCRIPT),
    file!("plot.css", STYLE),
    file!("dashboard.css", STYLE),
    file!("dashboard.js", SCRIPT, "dashboard/main.js"),
    file!("feed.js", SCRIPT, "dashboard/feed.js"),
    file!("dom.js", SCRIPT, "dashboard/dom.js"),
    file!("state.js", SCRIPT, "dashboard/state.js"),
    file!("text.js", SCRIPT, "dashboard/text.js"),
    file!("overview.js", SCRIPT, "dashboard/overview.js"),
    file!("table.js", SCRIPT, "dashboard/table.js"),
    file!("stages.js", SCRIPT, "dashboard/stages.js"),
    file!("tenant.js", SCRIPT, "dashboard/tenant.js"),
    file!("cluster.js", SCRIPT, "dashboard/cluster.js"),
    file!("device.js", SCRIPT, "dashboard/device.js"),
    file!("pairs.js", SCRIPT, "dashboard/pairs.js"),
    file!("attainment.js", SCRIPT, "dashboard/attainment.js"),
    file!("explained.js", SCRIPT, "dashboard/explained.js"),
    file!("promises.js", SCRIPT, "dashboard/promises.js"),
    file!("keys.js", SCRIPT, "dashboard/keys.js"),
];

/// Only the dashboard's own files run, only this server is asked, nobody frames it: a tenant's name
/// that looks like a script stays a name. Styles are set by script through the object model, which
/// needs no more.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ),
    // Asked for again at each visit: after an update an old script would meet a new API.
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
];

/// `GET /`.
pub(super) async fn index() -> Response {
    answer(&INDEX)
}

/// `GET /ui/{file}`.
pub(super) async fn file(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|file| file.0 == name) {
        Some(file) => answer(file),
        None => error(
            StatusCode::NOT_FOUND,
            "the dashboard has no such file".into(),
            format!("/ui/{name}"),
            "GET / is the dashboard".into(),
        ),
    }
}

fn answer((_, kind, content): &File) -> Response {
    let kind = HeaderValue::from_static(kind);
    (HEADERS, [(header::CONTENT_TYPE, kind)], *content).into_response()
}
