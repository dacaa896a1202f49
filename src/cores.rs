//! `cores`: how many things may run at once on this machine.

/// The processor's cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}
