//! Which addresses are everybody's: a crawler led to any other would ask inside its own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// The address that a URL has in the place of a name.
pub fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(v4) => Some(v4.into()),
        Host::Ipv6(v6) => Some(v6.into()),
        Host::Domain(_) => None,
    }
}

/// Where clouds answer whoever asks from one of their machines, with its passwords among other things.
const METADATA_V4: [Ipv4Addr; 7] = [
    Ipv4Addr::new(169, 254, 169, 254), // nearly all of them
    Ipv4Addr::new(169, 254, 170, 2),   // tasks on Amazon ECS
    Ipv4Addr::new(169, 254, 170, 23),  // pods on Amazon EKS
    Ipv4Addr::new(169, 254, 0, 23),    // Tencent
    Ipv4Addr::new(168, 63, 129, 16),   // Azure's own machines, at an address that looks public
    Ipv4Addr::new(100, 100, 100, 200), // Alibaba
    Ipv4Addr::new(192, 0, 0, 192),     // Oracle, formerly
];
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), // Amazon
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),  // pods on Amazon EKS
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),  // Google
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe), // OpenStack
];

/// Whether a cloud's metadata service is there: no name leads to it, whatever private addresses may be crawled.
pub fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => METADATA_V4.contains(&v4),
        IpAddr::V6(v6) => {
            METADATA_V6.contains(&v6) || carried_v4(v6).is_some_and(|v4| METADATA_V4.contains(&v4))
        }
    }
}

/// Whether an address is reachable and meant to be reached by anybody (IANA's special-purpose registries, RFC 6890).
///
/// An IPv6 address that carries an IPv4 one (mapped, 6to4, NAT64) is what that one is.
pub fn is_public(address: IpAddr) -> bool {
    if is_metadata(address) {
        return false;
    }
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => carried_v4(v6).map_or_else(|| is_public_v6(v6), is_public_v4),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    /// Network and prefix length of what is not everybody's.
    const SPECIAL: [([u8; 4], u32); 16] = [
        ([0, 0, 0, 0], 8),       // this network
        ([10, 0, 0, 0], 8),      // private
        ([100, 64, 0, 0], 10),   // shared, behind a provider's translation
        ([127, 0, 0, 0], 8),     // loopback
        ([169, 254, 0, 0], 16),  // link-local, cloud metadata
        ([172, 16, 0, 0], 12),   // private
        ([192, 0, 0, 0], 24),    // protocol assignments
        ([192, 0, 2, 0], 24),    // documentation
        ([192, 88, 99, 0], 24),  // 6to4 relays
        ([192, 168, 0, 0], 16),  // private
        ([198, 18, 0, 0], 15),   // benchmarking
        ([198, 51, 100, 0], 24), // documentation
        ([203, 0, 113, 0], 24),  // documentation
        ([224, 0, 0, 0], 4),     // multicast
        ([240, 0, 0, 0], 4),     // reserved
        ([255, 255, 255, 255], 32),
    ];
    let within = |(network, length): &([u8; 4], u32)| {
        (u32::from(address) ^ u32::from_be_bytes(*network)).leading_zeros() >= *length
    };
    !SPECIAL.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let global_unicast = first & 0xe000 == 0x2000;
    let protocol_assignments = first == 0x2001 && second < 0x0200;
    let documentation = (first == 0x2001 && second == 0x0db8) || (first == 0x3fff && second < 0x1000);
    global_unicast && !protocol_assignments && !documentation
}

fn carried_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let joined = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_everybodys_addresses_are_public() {
        for (text, public) in [
            ("93.184.216.34", true),
            ("1.1.1.1", true),
            ("172.32.0.1", true),
            ("100.128.0.1", true),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("100.64.0.1", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("169.254.169.254", false),
            ("172.31.255.255", false),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("192.168.1.1", false),
            ("198.19.0.1", false),
            ("198.51.100.7", false),
            ("203.0.113.9", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700::1111", true),
            ("2a00:1450::1", true),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:93.184.216.34", true),
            ("64:ff9b::10.0.0.1", false),
            ("64:ff9b::93.184.216.34", true),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:2::1", false),
            ("2001:db8::1", false),
            ("2001:4860::8888", true),
            ("2002:7f00:1::", false),
            ("2002:5db8:d822::", true),
            ("3fff::1", false),
            ("5f00::1", false),
            ("fc00::1", false),
            ("fd12::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            let address: IpAddr = text.parse().expect("an address");
            assert_eq!(is_public(address), public, "{text}");
        }
    }

    #[test]
    fn the_metadata_of_clouds_is_known_however_its_address_is_written() {
        for (text, known) in [
            ("169.254.169.254", true),
            ("168.63.129.16", true),
            ("100.100.100.200", true),
            ("fd00:ec2::254", true),
            ("::ffff:169.254.169.254", true),
            ("64:ff9b::a83f:8110", true),
            ("169.254.1.1", false),
            ("168.63.129.17", false),
            ("127.0.0.1", false),
            ("::1", false),
        ] {
            let address: IpAddr = text.parse().expect("an address");
            assert_eq!(is_metadata(address), known, "{text}");
            assert!(!(known && is_public(address)), "{text}");
        }
    }
}
