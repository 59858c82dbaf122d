//! Rows that accepted changes write besides the jobs: dead letters, duties, audit rows, the outbox, and messages to runs.

use std::collections::BTreeMap;

use lockgate_core::audit::AuditEntry;
use lockgate_core::ids::JobSeq;
use lockgate_core::job::{DeadLetter, Duty};
use lockgate_core::request::ChildOf;

use crate::conn::{SqlCall, SqlParam};
use crate::encoded_change::EncodedChange;
use crate::encoded_run_step::EncodedRunStep;
use crate::error::StatementError;

/// The net effect of a group: what begins and ends within it writes nothing.
#[derive(Default)]
pub(super) struct Sides<'a> {
    letters: BTreeMap<&'a str, DeadLetterChange<'a>>,
    changes: usize,
    duties: BTreeMap<(Duty, JobSeq), (&'a str, bool)>,
    audit: Vec<&'a AuditEntry>,
    /// Columns: job, sink, body.
    outbox: Vec<[&'a str; 3]>,
    /// Columns: job and run.
    parts: Vec<[&'a str; 2]>,
    news: Vec<RunNotice<'a>>,
    children: Vec<(&'a ChildOf, JobSeq, &'a str)>,
    /// By tenant and key; the last one of a group wins.
    memos: BTreeMap<[&'a str; 2], (&'a str, JobSeq, u64)>,
}

/// a message to a run, about a job or about a sub-run.
struct RunNotice<'a> {
    run: &'a str,
    job: Option<(&'a str, JobSeq)>,
    child: Option<&'a str>,
}

#[derive(Default)]
struct DeadLetterChange<'a> {
    dropped: bool,
    /// The dead letter, with its change's position in the group: lists show the newest first.
    kept: Option<(usize, &'a DeadLetter)>,
}

impl<'a> Sides<'a> {
    /// Must be called in the order of the changes.
    pub(super) fn add(&mut self, sheet: &'a EncodedChange, seq: JobSeq) {
        let id = sheet.id().as_str();
        self.changes += 1;
        if sheet.drops_letter() {
            self.letters.insert(id, DeadLetterChange { dropped: true, kept: None });
        }
        if let Some(letter) = &sheet.transition().dead_letter {
            self.letters.entry(id).or_default().kept = Some((self.changes, letter));
        }
        self.duties.extend(sheet.duties.iter().map(|(duty, begins)| ((*duty, seq), (id, *begins))));
        self.audit.extend(&sheet.audit);
        self.outbox.extend(sheet.change.outbox.iter().map(|entry| [id, &*entry.sink, entry.body.as_str()]));
        self.children.extend(sheet.parent().map(|of| (of, seq, id)));
        if let Some(part) = &sheet.job().request.run {
            let run = part.run.as_str();
            self.parts.extend(sheet.is_birth().then_some([id, run]));
            let told = sheet.transition().tells_its_run().then_some(RunNotice { run, job: Some((id, seq)), child: None });
            self.news.extend(told);
        }
        if let Some((key, for_ms)) = sheet.transition().memoises() {
            self.memos.insert([sheet.job().request.tenant.as_str(), key], (id, seq, for_ms));
        }
    }

    /// Adds an accepted step, with the sequence numbers of its jobs.
    pub(super) fn add_step(&mut self, sheet: &'a EncodedRunStep, seqs: &[JobSeq]) {
        self.audit.extend(&sheet.audit);
        for (job, seq) in sheet.jobs.iter().zip(seqs) {
            self.add(job, *seq);
        }
        if let Some(parent) = sheet.head.parent.as_ref().filter(|_| sheet.head.state.is_over()) {
            self.news.push(RunNotice { run: parent.run.as_str(), job: None, child: Some(sheet.id()) });
        }
    }

    pub(super) fn calls(&self, now: Option<i64>, shard: i64) -> Result<Vec<SqlCall<'a>>, StatementError> {
        let mut calls = Vec::new();
        let dropped: Vec<&str> = self.letters.iter().filter(|(_, letter)| letter.dropped).map(|(id, _)| *id).collect();
        if !dropped.is_empty() {
            calls.push(SqlCall {
                sql: include_str!("../../queries/drop_letters.sql"),
                params: vec![Box::new(dropped), Box::new(shard)],
            });
        }
        let mut kept: Vec<(usize, &DeadLetter)> = self.letters.values().filter_map(|letter| letter.kept).collect();
        kept.sort_unstable_by_key(|(place, _)| *place);
        let kept: Vec<&DeadLetter> = kept.into_iter().map(|(_, letter)| letter).collect();
        if !kept.is_empty() {
            calls.push(keep_letters(&kept, shard)?);
        }
        for (begins, sql) in
            [(true, include_str!("../../queries/begin_duties.sql")), (false, include_str!("../../queries/end_duties.sql"))]
        {
            calls.extend(self.duty_call(begins, sql));
        }
        if !self.audit.is_empty() {
            calls.push(SqlCall { sql: KEEP_AUDIT, params: audit_columns(&self.audit) });
        }
        if !self.outbox.is_empty() {
            let column = |at: usize| -> SqlParam<'a> { Box::new(self.outbox.iter().map(|row| row[at]).collect::<Vec<_>>()) };
            let params: Vec<SqlParam<'a>> = vec![Box::new(now), column(0), column(1), column(2)];
            calls.push(SqlCall { sql: include_str!("../../queries/keep_outbox.sql"), params });
        }
        calls.extend(self.part_call());
        calls.extend(self.news_call(now));
        calls.extend(self.child_call());
        calls.extend(self.memo_call(now));
        Ok(calls)
    }

    fn part_call(&self) -> Option<SqlCall<'a>> {
        let column = |at: usize| -> SqlParam<'a> { Box::new(self.parts.iter().map(|row| row[at]).collect::<Vec<_>>()) };
        let sql = include_str!("../../queries/keep_run_jobs.sql");
        (!self.parts.is_empty()).then(|| SqlCall { sql, params: vec![column(0), column(1)] })
    }

    fn news_call(&self, now: Option<i64>) -> Option<SqlCall<'a>> {
        let params: Vec<SqlParam<'a>> = vec![
            Box::new(now),
            Box::new(self.news.iter().map(|news| news.run).collect::<Vec<_>>()),
            Box::new(self.news.iter().map(|news| news.job.map(|(id, _)| id)).collect::<Vec<_>>()),
            Box::new(self.news.iter().map(|news| news.job.map(|(_, seq)| seq.0)).collect::<Vec<_>>()),
            Box::new(self.news.iter().map(|news| news.child).collect::<Vec<_>>()),
        ];
        let sql = include_str!("../../queries/keep_news.sql");
        (!self.news.is_empty()).then_some(SqlCall { sql, params })
    }

    fn child_call(&self) -> Option<SqlCall<'a>> {
        let params: Vec<SqlParam<'a>> = vec![
            Box::new(self.children.iter().map(|(of, ..)| of.parent.as_str()).collect::<Vec<_>>()),
            Box::new(self.children.iter().map(|(of, ..)| i64::from(of.life)).collect::<Vec<_>>()),
            Box::new(self.children.iter().map(|(_, seq, _)| seq.0).collect::<Vec<_>>()),
            Box::new(self.children.iter().map(|(.., id)| *id).collect::<Vec<_>>()),
        ];
        (!self.children.is_empty()).then_some(SqlCall { sql: include_str!("../../queries/keep_children.sql"), params })
    }

    fn memo_call(&self, now: Option<i64>) -> Option<SqlCall<'a>> {
        let params: Vec<SqlParam<'a>> = vec![
            Box::new(now),
            Box::new(self.memos.keys().map(|key| key[0]).collect::<Vec<_>>()),
            Box::new(self.memos.keys().map(|key| key[1]).collect::<Vec<_>>()),
            Box::new(self.memos.values().map(|(id, ..)| *id).collect::<Vec<_>>()),
            Box::new(self.memos.values().map(|(_, seq, _)| seq.0).collect::<Vec<_>>()),
            Box::new(self.memos.values().map(|(.., life)| i64::try_from(*life).unwrap_or(i64::MAX)).collect::<Vec<_>>()),
        ];
        let sql = include_str!("../../queries/keep_memos.sql");
        (!self.memos.is_empty()).then_some(SqlCall { sql, params })
    }

    fn duty_call(&self, begins: bool, sql: &'static str) -> Option<SqlCall<'a>> {
        let duties: Vec<_> = self.duties.iter().filter(|(_, (_, now))| *now == begins).collect();
        let mut params: Vec<SqlParam<'a>> = vec![
            Box::new(duties.iter().map(|((duty, _), _)| duty.as_str()).collect::<Vec<_>>()),
            Box::new(duties.iter().map(|((_, seq), _)| seq.0).collect::<Vec<_>>()),
        ];
        if begins {
            params.push(Box::new(duties.iter().map(|(_, (id, _))| *id).collect::<Vec<_>>()));
        }
        (!duties.is_empty()).then_some(SqlCall { sql, params })
    }

    pub(super) fn rows(&self) -> u64 {
        let letters = self.letters.values().map(|letter| usize::from(letter.dropped) + usize::from(letter.kept.is_some()));
        let told = self.parts.len() + self.news.len() + self.children.len() + self.memos.len();
        (letters.sum::<usize>() + self.duties.len() + self.audit.len() + self.outbox.len() + told) as u64
    }
}

pub(crate) const KEEP_AUDIT: &str = include_str!("../../queries/keep_audit.sql");

pub(crate) fn audit_columns<'a>(entries: &[&'a AuditEntry]) -> Vec<SqlParam<'a>> {
    let column = |of: fn(&'a AuditEntry) -> &'a str| -> SqlParam<'a> {
        Box::new(entries.iter().map(|entry| of(entry)).collect::<Vec<_>>())
    };
    vec![
        Box::new(entries.iter().map(|entry| entry.at.as_millis()).collect::<Vec<_>>()),
        column(|entry| entry.tenant.as_str()),
        column(|entry| entry.actor.as_str()),
        column(|entry| entry.action.as_str()),
        column(|entry| &entry.subject),
        column(|entry| entry.detail.as_str()),
    ]
}

fn keep_letters<'a>(letters: &[&'a DeadLetter], shard: i64) -> Result<SqlCall<'a>, StatementError> {
    let column = |of: fn(&'a DeadLetter) -> &'a str| -> SqlParam<'a> {
        Box::new(letters.iter().map(|letter| of(letter)).collect::<Vec<_>>())
    };
    let texts = letters.iter().map(serde_json::to_string).collect::<Result<Vec<String>, _>>()?;
    let params: Vec<SqlParam<'a>> = vec![
        Box::new(shard),
        column(|letter| letter.job_id.as_str()),
        column(|letter| letter.tenant.as_str()),
        column(|letter| letter.topic.as_str()),
        Box::new(letters.iter().map(|letter| letter.priority as i64).collect::<Vec<_>>()),
        column(|letter| letter.reason.stored()),
        Box::new(texts),
    ];
    Ok(SqlCall { sql: include_str!("../../queries/keep_letters.sql"), params })
}
