//! URLs that people name as pages of a site.

use crate::canonical_url::CanonicalUrl;
use crate::site::{PageRule, Refusal, Site};

/// A page as its site stores it, and the rule that takes it; else why it is none of its pages.
pub(in crate::cli) fn page_of<'a>(
    site: &'a Site,
    text: &str,
) -> Result<(CanonicalUrl, &'a PageRule), String> {
    let name = &site.name;
    let url = CanonicalUrl::parse(text.trim()).map_err(|e| e.to_string())?;
    let url = site.canonical(url.url().clone()).map_err(|e| e.to_string())?;
    // How deep a page is that was asked for doesn't count.
    let rule = site.takes(&url, 0).map_err(|refusal| match refusal {
        Refusal::Host => {
            format!("{url}: {} is no host of site `{name}`; add it to scope.hosts", url.host())
        }
        Refusal::Denied(_) => format!("{url}: scope.deny of site `{name}` forbids it"),
        _ => format!("{url}: no page rule of site `{name}` takes it; add one to its file"),
    })?;
    Ok((url, rule))
}
