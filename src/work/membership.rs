//! This process's place among those that claim. It takes another one where it was declared dead by mistake.

use std::sync::{Arc, Mutex, PoisonError};

use crate::frontier::Member;

/// The place that is held now.
#[derive(Debug)]
pub(super) struct Membership(Mutex<Arc<Member>>);

impl Membership {
    pub(super) fn new(member: Member) -> Self {
        Self(Mutex::new(Arc::new(member)))
    }

    pub(super) fn current(&self) -> Arc<Member> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn replace(&self, member: Member) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(member);
    }

    /// The place, when nobody uses it any more.
    pub(super) fn into_member(self) -> Option<Member> {
        Arc::into_inner(self.0.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
