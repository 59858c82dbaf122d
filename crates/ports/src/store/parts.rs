//! Splits a call that contains a refused item, so that the other items succeed.

use std::ops::Range;

use super::StoreError;

/// Makes a call over `items` items; answers in order. If the Store refuses it, the call is halved until the refused item is
/// alone, and `refused` makes its answer. A call without a refused item is made once.
///
/// Once a part has succeeded, the failure of another leaves the outcome of the whole unknown.
pub async fn in_parts<A, F>(
    items: usize,
    call: impl Fn(Range<usize>) -> F,
    refused: impl Fn(usize, String) -> A,
) -> Result<Vec<A>, StoreError>
where
    F: Future<Output = Result<Vec<A>, StoreError>>,
{
    match call(0..items).await {
        Err(StoreError::Refused(why)) if items == 1 => return Ok(vec![refused(0, why)]),
        Err(StoreError::Refused(_)) => {}
        answered => return answered,
    }
    let (mut answers, mut done) = (Vec::with_capacity(items), false);
    let mut left = halves(&(0..items)).to_vec();
    while let Some(part) = left.pop() {
        match call(part.clone()).await {
            Ok(some) => {
                answers.extend(some);
                done = true;
            }
            Err(StoreError::Refused(why)) if part.len() <= 1 => answers.push(refused(part.start, why)),
            Err(StoreError::Refused(_)) => left.extend(halves(&part)),
            Err(error) if done => return Err(StoreError::UnknownOutcome(error.to_string())),
            Err(error) => return Err(error),
        }
    }
    Ok(answers)
}

/// The half to do first comes last, because the parts are a stack.
fn halves(part: &Range<usize>) -> [Range<usize>; 2] {
    let middle = part.start + part.len() / 2;
    [middle..part.end, part.start..middle]
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use super::*;

    /// The outcome of items of which some are refused, and the number of calls.
    async fn doing(items: usize, bad: &[usize]) -> (Vec<Result<usize, usize>>, usize) {
        let calls = Cell::new(0);
        let call = |part: Range<usize>| {
            calls.set(calls.get() + 1);
            let refused = part.clone().any(|item| bad.contains(&item));
            ready(if refused { Err(StoreError::Refused("no".to_owned())) } else { Ok(part.map(Ok).collect()) })
        };
        let answers = in_parts(items, call, |item, _| Err(item)).await.expect("answered");
        (answers, calls.get())
    }

    #[tokio::test]
    async fn what_is_not_taken_is_alone_and_everybody_is_answered_in_order() {
        for bad in [vec![], vec![0], vec![99], vec![41], vec![3, 4, 70]] {
            let (answers, calls) = doing(100, &bad).await;
            let wanted: Vec<_> = (0..100).map(|item| if bad.contains(&item) { Err(item) } else { Ok(item) }).collect();
            assert_eq!(answers, wanted);
            assert!(calls <= 1 + bad.len() * 14, "{calls} calls for {bad:?}");
        }
        assert_eq!(doing(1, &[0]).await, (vec![Err(0)], 1));
    }

    /// A Store that becomes unavailable after `answered` answers.
    async fn going_away(answered: usize) -> StoreError {
        let left = Cell::new(answered);
        let call = |part: Range<usize>| {
            if left.get() == 0 {
                return ready(Err(StoreError::Unavailable("away".to_owned())));
            }
            left.set(left.get() - 1);
            ready(if part.contains(&3) { Err(StoreError::Refused("no".to_owned())) } else { Ok(part.collect()) })
        };
        in_parts(4, call, |item, _| item).await.expect_err("it went away")
    }

    #[tokio::test]
    async fn a_failure_is_certain_until_a_part_was_done() {
        assert!(matches!(going_away(0).await, StoreError::Unavailable(_)));
        assert!(matches!(going_away(1).await, StoreError::Unavailable(_)));
        assert!(matches!(going_away(2).await, StoreError::UnknownOutcome(_)), "the first half is there");
    }
}
