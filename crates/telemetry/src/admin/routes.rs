//! What each path answers.

use std::sync::Arc;

use axum::extract::{Path, State as Extract};
use axum::http::{header, Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};

use super::guard::{self, Guard};
use super::{events, gather, pages, Shared};
use crate::api::{ErrorText, ErrorView, HistogramsView, ServerView, TenantView};
use crate::cluster::ClusterView;
use crate::live::view::PastView;
use crate::metrics::render;
use crate::model::{State, TenantSnapshot};
use crate::promise::DelayRow;

type Source = Extract<Arc<Shared>>;

/// Prometheus's text format, version 0.0.4.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn router(shared: Arc<Shared>, guard: Arc<Guard>) -> Router {
    Router::new()
        .route("/", get(pages::index))
        .route("/ui/{file}", get(pages::file))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/api/server", get(server))
        .route("/api/tenants", get(tenants))
        .route("/api/tenants/{name}", get(tenant))
        .route("/api/histograms", get(histograms))
        .route("/api/delays", get(delays))
        .route("/api/cluster", get(cluster))
        .route("/api/cluster/{name}", get(cluster_tenant))
        .route("/api/explain/{name}", get(explain))
        .route("/api/attainment/{name}", get(attainment))
        .route("/api/stages", get(stages))
        .route("/api/history", get(history))
        .route("/api/live", get(events::live))
        .route("/api/live/{name}", get(events::live_tenant))
        .route("/api/events", get(events::events))
        .route("/api/events/{name}", get(events::events_tenant))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(guard, guard::stand))
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
        Some(tenant) => {
            let settings = shared.source.settings(&name);
            let view = TenantView::new(tenant);
            Json(TenantView { settings, ..view }).into_response()
        }
        None => no_such_tenant(&name, format!("/api/tenants/{name}")),
    }
}

async fn histograms(Extract(shared): Source) -> Json<Vec<HistogramsView>> {
    let tenants = shared.source.tenants();
    let of = |tenant: &TenantSnapshot| {
        let totals = shared.registry.totals(&tenant.name).unwrap_or_default();
        HistogramsView::of(&tenant.name, totals)
    };
    Json(tenants.iter().flat_map(of).collect())
}

async fn delays(Extract(shared): Source) -> Json<Vec<DelayRow>> {
    Json(DelayRow::of(&shared.source.tenants()))
}

async fn explain(Extract(shared): Source, Path(name): Path<String>) -> Response {
    match shared.source.explain(&name) {
        Some(explanation) => Json(explanation).into_response(),
        None => no_such_tenant(&name, format!("/api/explain/{name}")),
    }
}

async fn attainment(Extract(shared): Source, Path(name): Path<String>) -> Response {
    match shared.source.attainment(&name) {
        Some(promises) => Json(promises).into_response(),
        None => no_such_tenant(&name, format!("/api/attainment/{name}")),
    }
}

/// `null` where no cluster stands behind the server.
async fn cluster(Extract(shared): Source) -> Json<Option<ClusterView>> {
    Json(shared.source.cluster(None))
}

async fn cluster_tenant(Extract(shared): Source, Path(name): Path<String>) -> Response {
    match shared.source.cluster(Some(&name)) {
        Some(view) if view.tenants.is_empty() => {
            no_such_tenant(&name, format!("/api/cluster/{name}"))
        }
        view => Json(view).into_response(),
    }
}

async fn history(Extract(shared): Source) -> Json<PastView> {
    Json(shared.past.lock().view())
}

pub(super) fn no_such_tenant(name: &str, place: String) -> Response {
    error(
        StatusCode::NOT_FOUND,
        format!("there is no tenant named {name:?}"),
        place,
        "GET /api/tenants lists the tenants".into(),
    )
}

async fn stages(Extract(shared): Source) -> Response {
    Json(shared.source.stages()).into_response()
}

async fn unknown_path(uri: Uri) -> Response {
    let advice = "GET / is the dashboard, docs/reference/admin-api.md lists the paths".into();
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

pub(super) fn error(status: StatusCode, what: String, place: String, advice: String) -> Response {
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
