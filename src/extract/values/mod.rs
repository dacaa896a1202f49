//! Values as people write them: prices, numbers, dates.

mod cents;
mod currency;
pub(super) mod date;
pub(super) mod number;
mod price;

pub use price::Price;
