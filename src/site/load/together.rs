//! What a site file can't have beside others: a name or host of another one's, a lane that isn't in `paced.toml`.

use crate::site::Site;
use crate::site::error::SiteError;
use crate::site::read::{place_of, said_of};
use crate::task::FleetRules;

/// Two sites with one name, or with one host, which would be asked at two paces; sites of one group share theirs.
///
/// Each site comes with its file's name; the error stands in the later file.
pub fn two_sites_one_host(sites: &[(String, Site)]) -> Vec<SiteError> {
    let mut errors = Vec::new();
    for (index, (file, site)) in sites.iter().enumerate() {
        for (other_file, other) in &sites[..index] {
            errors.extend(one_name(file, site, other_file, other));
            errors.extend(one_host(file, site, other_file, other));
        }
    }
    errors
}

/// Sites whose lane is none of the fleet's, each with its file's name (F15).
pub fn unknown_lanes(sites: &[(String, Site)], fleet: &FleetRules) -> Vec<SiteError> {
    let unknown = |(file, site): &(String, Site)| {
        let lane = site.lane.as_ref().filter(|lane| !fleet.has_lane(lane))?;
        let what = format!("there is no lane `{lane}`");
        let known = fleet.known_lanes();
        let what_to_do = format!("write it into [lanes] of paced.toml, or name one that is there: {known}");
        Some(said_of((file, &site.text), &["lane"], what, what_to_do))
    };
    sites.iter().filter_map(unknown).collect()
}

fn one_name(file: &str, site: &Site, other_file: &str, other: &Site) -> Option<SiteError> {
    // The name becomes a file's, and some file systems don't tell cases apart.
    site.name.eq_ignore_ascii_case(&other.name).then(|| {
        let what = format!("the name `{}` is also that of {other_file}", site.name);
        said_of((file, &site.text), &["name"], what, "give each site its own name")
    })
}

fn one_host(file: &str, site: &Site, other_file: &str, other: &Site) -> Option<SiteError> {
    if site.group.is_some() && site.group == other.group {
        return None;
    }
    let host = site.scope.hosts.iter().find(|host| other.scope.hosts.contains(host))?;
    let keys: &[&str] = if place_of(&site.text, &["scope", "hosts"]) == place_of(&site.text, &["scope"]) {
        &["seeds"]
    } else {
        &["scope", "hosts"]
    };
    let what = format!("the host `{host}` also belongs to {other_file}, so it would be asked at two paces");
    Some(said_of((file, &site.text), keys, what, "put both into one file, or give both the same `group`"))
}
