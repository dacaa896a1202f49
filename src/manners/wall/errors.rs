//! Answers of 503 without a word of when: one is an accident, several among few answers are a refusal (W1).

use std::collections::VecDeque;

/// Among so many answers of a pace unit,
const ANSWERS: usize = 20;
/// so many are a refusal.
const TOO_MANY: usize = 3;

/// The last answers of a pace unit, and which of them were a 503 without a `Retry-After`.
#[derive(Clone, Debug, Default)]
pub struct ServerErrors(VecDeque<bool>);

impl ServerErrors {
    /// Hears an answer. True: that was one 503 too many, and counting begins anew.
    pub fn hear(&mut self, is_error: bool) -> bool {
        // A unit that never answers so has nothing to remember.
        if !is_error && self.0.is_empty() {
            return false;
        }
        self.0.push_back(is_error);
        if self.0.len() > ANSWERS {
            self.0.pop_front();
        }
        let is_over = is_error && self.0.iter().filter(|error| **error).count() >= TOO_MANY;
        if is_over || !self.0.contains(&true) {
            self.0.clear();
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuses(answers: impl IntoIterator<Item = bool>) -> Vec<usize> {
        let mut errors = ServerErrors::default();
        let heard = answers.into_iter().enumerate().filter(|(_, error)| errors.hear(*error));
        heard.map(|(at, _)| at).collect()
    }

    #[test]
    fn w1_the_third_503_among_twenty_answers_is_a_refusal() {
        let at = |errors: &[usize]| {
            let errors = errors.to_vec();
            refuses((0..60).map(move |n| errors.contains(&n)))
        };
        assert_eq!(at(&[5, 6, 7]), [7]);
        assert_eq!(at(&[5, 14, 24]), [24]);
        assert_eq!(at(&[5, 15, 25]), Vec::<usize>::new(), "the first was 20 answers ago");
        assert_eq!(at(&[1, 2, 3, 4, 5, 6]), [3, 6], "counted anew");
    }
}
