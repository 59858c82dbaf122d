//! Reads of runs: filters over all rows, sorted. Slow and plain on purpose.

use lockgate_core::dag::{Run, RunHead};
use lockgate_core::ids::RunId;
use lockgate_core::job::{Earlier, JobState};
use lockgate_core::time::Timestamp;

use super::data::{Data, NewsSource, RunRow, UnheardNews};
use super::reads::without_payload;
use lockgate_ports::store::{Cursor, Listing, MemoKey, NewsRow, RunNews, RunQuery};

impl Data {
    pub(super) fn run_since(&self, id: &RunId, version: i64) -> Option<Run> {
        let row = self.runs.get(id)?;
        let changed = row.nodes.iter().filter(|(_, (at, _))| *at > version);
        Some(Run { head: row.head.clone(), nodes: changed.map(|(key, (_, node))| (*key, node.clone())).collect() })
    }

    pub(super) fn list_runs(&self, query: &RunQuery) -> Listing<RunHead> {
        let (before, limit) = (query.cursor.map_or(i64::MAX, |cursor| cursor.0), query.limit.max(1));
        let mut rows: Vec<&RunRow> = self.runs.values().filter(|row| row.no < before && wanted(query, &row.head)).collect();
        rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.no));
        rows.truncate(limit);
        let next = rows.last().filter(|_| rows.len() == limit).map(|row| Cursor(row.no));
        Listing { items: rows.into_iter().map(|row| row.head.clone()).collect(), next }
    }

    pub(super) fn news(&self, runs: &[RunId], limit: usize) -> Vec<NewsRow> {
        let theirs = self.news.iter().filter(|(_, news)| runs.contains(&news.run));
        let row =
            |(no, news): (&i64, &UnheardNews)| Some(NewsRow { no: *no, run: news.run.clone(), what: self.told(&news.of)? });
        theirs.filter_map(row).take(limit).collect()
    }

    fn told(&self, of: &NewsSource) -> Option<RunNews> {
        Some(match of {
            NewsSource::Job(seq) => {
                let row = self.jobs.get(seq).filter(|row| self.is_readable(row))?;
                let result = row.result.clone().filter(|_| row.job.result_is_out());
                RunNews::Job { job: Box::new(without_payload(&row.job)), result }
            }
            NewsSource::Run(id) => RunNews::Run(Box::new(self.runs.get(id)?.head.clone())),
        })
    }

    pub(super) fn memo(&self, key: &MemoKey, now: Timestamp) -> Option<Earlier> {
        let (seq, _) = self.memos.get(key).filter(|(_, until)| *until > now)?;
        let row = self.jobs.get(seq).filter(|row| row.job.state() == JobState::Succeeded && row.job.result_is_out())?;
        let row = Some(row).filter(|row| self.is_readable(row))?;
        Some(Earlier { job: Box::new(without_payload(&row.job)), result: row.result.clone()? })
    }

    pub(super) fn unheard(&self, until: Timestamp, limit: usize) -> Vec<RunId> {
        let known = |news: &&UnheardNews| news.at <= until && (news.run.is_saga() || self.runs.contains_key(&news.run));
        let mut old: Vec<(Timestamp, &RunId)> = self.news.values().filter(known).map(|news| (news.at, &news.run)).collect();
        // Stable, so that news of one time keep the order of their numbers.
        old.sort_by_key(|(at, _)| *at);
        let mut runs: Vec<RunId> = Vec::new();
        for (_, run) in old {
            if runs.len() < limit && !runs.contains(run) {
                runs.push(run.clone());
            }
        }
        runs
    }

    pub(super) fn waking(&self, now: Timestamp, limit: usize) -> Vec<RunId> {
        let live = self.runs.values().filter(|row| !row.head.state.is_over());
        let mut due: Vec<(Timestamp, &RunId)> = live.filter_map(|row| Some((row.head.wakes_at?, &row.head.id))).collect();
        due.retain(|(at, _)| *at <= now);
        due.sort_unstable();
        due.into_iter().take(limit).map(|(_, id)| id.clone()).collect()
    }

    pub(super) fn live_runs(&self, after: Option<&RunId>, limit: usize) -> Vec<RunId> {
        let later = self.runs.iter().filter(|(id, _)| after.is_none_or(|after| *id > after));
        later.filter(|(_, row)| !row.head.state.is_over()).take(limit).map(|(id, _)| id.clone()).collect()
    }
}

fn wanted(query: &RunQuery, head: &RunHead) -> bool {
    query.tenant.as_ref().is_none_or(|tenant| *tenant == head.tenant)
        && query.dag.as_ref().is_none_or(|dag| *dag == head.dag.name)
        && query.state.is_none_or(|state| state == head.state)
        && query.sagas.is_none_or(|sagas| sagas == head.id.is_saga())
}
