//! manners
