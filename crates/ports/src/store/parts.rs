//! A call with an item that the Store does not take is done in parts, so that its neighbours go on.

use std::ops::Range;

use super::StoreError;

/// Makes a call over so many items; answers in their order. If the Store refuses it, it is halved until what it does not take is
/// alone, and `refused` says what is answered for that one. A call that goes through is made once and costs nothing more.
///
/// Once a part was done, the failure of another leaves it unknown how far the whole came.
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

/// The one that is to be done first comes last.
fn halves(part: &Range<usize>) -> [Range<usize>; 2] {
    let middle = part.start + part.len() / 2;
    [middle..part.end, part.start..middle]
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use super::*;

    /// What came of items of which some are not taken, and in how many calls.
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

    /// With a Store that goes away after so many answers.
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
