//! A request to an address that the operator names: no site's, so it has neither a pace nor a permit.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Certificate, Client, ClientBuilder, redirect, retry};
use url::Url;

use super::FetcherError;
use super::client::install_tls;
use super::error::root;

/// The most of an answer that is shown, in bytes.
const SHOWN: usize = 200;

/// Posts JSON. Redirects aren't followed, and nothing is sent again.
#[derive(Debug)]
pub struct Webhook(Client);

impl Webhook {
    /// One that waits so long for its answer, and trusts the certificates of `cacert` (PEM) besides the system's.
    pub fn new(within: Duration, cacert: Option<&[u8]>) -> Result<Self, FetcherError> {
        install_tls();
        let roots = cacert.map(Certificate::from_pem_bundle).transpose();
        let roots = roots.map_err(|error| FetcherError::Certificate(error.to_string()))?.unwrap_or_default();
        let failed = |error: reqwest::Error| FetcherError::Client(root(&error).to_string());
        // On a machine that trusts nobody, an address without TLS does.
        let client = builder(within).tls_certs_merge(roots.clone()).build();
        client.or_else(|_| builder(within).tls_certs_only(roots).build()).map(Self).map_err(failed)
    }

    /// Posts a text of JSON; why it wasn't taken.
    pub async fn post(&self, url: &Url, json: String) -> Result<(), String> {
        let request = self.0.post(url.clone()).header(CONTENT_TYPE, "application/json").body(json);
        let mut answer = request.send().await.map_err(|error| why(&error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let body = answer.chunk().await.ok().flatten().unwrap_or_default();
        let body = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).trim().to_owned();
        Err(if body.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {body}") })
    }
}

fn builder(within: Duration) -> ClientBuilder {
    let agent = concat!("paced/", env!("CARGO_PKG_VERSION"));
    let builder = ClientBuilder::new().no_proxy().redirect(redirect::Policy::none()).retry(retry::never());
    builder.user_agent(agent).timeout(within).pool_max_idle_per_host(0)
}

/// What went wrong, without the URL: it may be as good as a password.
fn why(error: &reqwest::Error) -> String {
    if error.is_timeout() { "no answer in time".to_owned() } else { root(error).to_string() }
}
