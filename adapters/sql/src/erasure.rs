//! Searches the ended jobs of a tenant that is being erased.
//!
//! Jobs have no index by tenant, because every submit and end would pay for it. So all jobs are read, one range at a time.

use lockgate_core::ids::TenantId;
use parking_lot::Mutex;

/// How far an erasure that takes several calls has searched.
#[derive(Default)]
pub struct ErasureSearch {
    reached: Mutex<Option<(TenantId, i64)>>,
}

impl ErasureSearch {
    /// Up to `wanted` ended jobs of a tenant, from where the last call stopped. If these are too few, the search goes once
    /// more from the beginning, because jobs there may have ended since. `stretch` reads at most so many jobs after a
    /// position and returns how far it came; None if no job follows.
    pub async fn next<Job, E, Stretch>(
        &self,
        tenant: &TenantId,
        wanted: usize,
        stretch: impl Fn(i64, usize) -> Stretch,
    ) -> Result<Vec<Job>, E>
    where
        Stretch: Future<Output = Result<Option<(Vec<Job>, i64)>, E>>,
    {
        let reached = self.reached.lock().take().filter(|(of, _)| of == tenant).map(|(_, after)| after);
        for from in reached.into_iter().chain([0]) {
            let (mut found, mut after) = (Vec::new(), from);
            while found.len() < wanted {
                let Some((jobs, next)) = stretch(after, wanted - found.len()).await? else { break };
                found.extend(jobs);
                after = next;
            }
            if found.len() == wanted || from == 0 {
                *self.reached.lock() = Some((tenant.clone(), after));
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Jobs 1 to 9, read in ranges of at most three positions; only odd ones belong to the tenant.
    async fn stretch(after: i64, most: usize) -> Result<Option<(Vec<i64>, i64)>, Infallible> {
        let places: Vec<i64> = (after + 1..10).take(3).collect();
        let jobs: Vec<i64> = places.iter().copied().filter(|place| place % 2 == 1).take(most).collect();
        let next = if jobs.len() == most { jobs.last() } else { places.last() };
        Ok(next.map(|next| (jobs.clone(), *next)))
    }

    #[tokio::test]
    async fn a_call_goes_on_where_the_last_one_stopped_and_once_more_from_the_beginning() {
        let (search, acme) = (ErasureSearch::default(), TenantId::from("acme"));
        let mut found = Vec::new();
        for wanted in [2, 2, 3] {
            found.push(search.next(&acme, wanted, stretch).await.unwrap());
        }
        assert_eq!(found, [vec![1, 3], vec![5, 7], vec![1, 3, 5]]);
    }

    #[tokio::test]
    async fn another_tenant_is_searched_from_the_beginning() {
        let search = ErasureSearch::default();
        assert_eq!(search.next(&"acme".into(), 4, stretch).await.unwrap(), [1, 3, 5, 7]);
        assert_eq!(search.next(&"other".into(), 1, stretch).await.unwrap(), [1]);
    }
}
