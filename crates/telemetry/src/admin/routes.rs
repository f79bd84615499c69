//! What each path answers.

use std::sync::Arc;

use axum::extract::{Path, State as Extract};
use axum::http::{header, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};

use super::{gather, Shared};
use crate::api::{ErrorText, ErrorView, ServerView, TenantView};
use crate::metrics::render;
use crate::model::State;

type Source = Extract<Arc<Shared>>;

/// Prometheus's text format, version 0.0.4.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A plain page of links.
const INDEX: &str = include_str!("index.html");

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(|| async { Html(INDEX) }))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/api/server", get(server))
        .route("/api/tenants", get(tenants))
        .route("/api/tenants/{name}", get(tenant))
        .route("/api/stages", get(stages))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(shared)
}

async fn readyz(Extract(shared): Source) -> Response {
    match shared.source.state() {
        State::Ready => "ready\n".into_response(),
        state => {
            let text = format!("{}: {}\n", state.name(), state.reason().unwrap_or_default());
            (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
        }
    }
}

async fn metrics(Extract(shared): Source) -> Response {
    let scrape = gather(shared.source.as_ref(), &shared.registry, shared.now_ns());
    ([(header::CONTENT_TYPE, METRICS_TYPE)], render(&scrape)).into_response()
}

async fn server(Extract(shared): Source) -> Json<ServerView> {
    let (state, server) = (shared.source.state(), shared.source.server());
    Json(ServerView {
        state,
        server,
        usage: shared.registry.usage(),
    })
}

async fn tenants(Extract(shared): Source) -> Json<Vec<TenantView>> {
    let scrape = gather(shared.source.as_ref(), &shared.registry, shared.now_ns());
    Json(scrape.tenants.into_values().map(TenantView::new).collect())
}

async fn tenant(Extract(shared): Source, Path(name): Path<String>) -> Response {
    // Shares are relative to all tenants, so all are gathered.
    let mut scrape = gather(shared.source.as_ref(), &shared.registry, shared.now_ns());
    match scrape.tenants.remove(&name) {
        Some(tenant) => Json(TenantView::new(tenant)).into_response(),
        None => error(
            StatusCode::NOT_FOUND,
            format!("there is no tenant named {name:?}"),
            format!("/api/tenants/{name}"),
            "GET /api/tenants lists the tenants".into(),
        ),
    }
}

async fn stages(Extract(shared): Source) -> Response {
    Json(shared.source.stages()).into_response()
}

async fn unknown_path(uri: Uri) -> Response {
    let advice = "GET / lists what there is".into();
    error(
        StatusCode::NOT_FOUND,
        "there is nothing at this path".into(),
        uri.path().into(),
        advice,
    )
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let what = format!("{method} is not possible here");
    error(
        StatusCode::METHOD_NOT_ALLOWED,
        what,
        uri.path().into(),
        "use GET".into(),
    )
}

fn error(status: StatusCode, what: String, place: String, advice: String) -> Response {
    (
        status,
        Json(ErrorView {
            error: ErrorText {
                what,
                place,
                advice,
            },
        }),
    )
        .into_response()
}
