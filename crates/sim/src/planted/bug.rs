//! Which bugs can be planted.

/// A bug planted in the simulated world of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The Store does not compare the version of a job.
    VersionIgnored,
    /// The Store does not look at the evidence of a change.
    EvidenceIgnored,
    /// The engine reports attempts as lost or timed out without evidence.
    EvidenceOmitted,
    /// The engine schedules jobs that have no verdict.
    VerdictsAssumed,
    /// The Store activates whatever it is given, whichever version was expected.
    ActivationsNotCompared,
    /// The Store does not compare the policy of a dispatch with the one in force.
    PolicyIgnored,
    /// The engine names the pool states in force as evidence, instead of those under which it chose the worker.
    StatesAssumed,
    /// The Store drops the last change of a large batch and acknowledges it.
    BatchCutShort,
    /// The Store answers before a change is on disk; a crash loses it.
    AnsweredTooEarly,
    /// The Store drops the events of every third change.
    EventsDropped,
    /// The engine ends jobs a second time, with another state.
    EndedTwice,
    /// The Store keeps no dead letters.
    LettersDropped,
    /// The Store does not remember idempotency keys.
    KeysForgotten,
    /// The Store's indexes never name certain jobs.
    RowsForgotten,
    /// The Store charges the client for attempts that the platform lost.
    LossesCharged,
    /// The Store does not list jobs whose deadline has passed.
    DeadlinesForgotten,
    /// The Store does not compare the version of a run.
    StepsNotCompared,
    /// The Store does not give certain runs the messages about their jobs' ends.
    NewsForgotten,
    /// A run issues each compensation twice.
    UndoneTwice,
    /// The Store tells runs that certain completed jobs were cancelled, so that they are not undone.
    UndoSkipped,
    /// The compensations of workflows are never issued.
    UndosDropped,
    /// The Store forgets the compensations of workflow jobs.
    EntriesForgotten,
    /// The Store gives a workflow its messages in reverse order.
    NewsReversed,
    /// A run treats an attempt as over as soon as its job is cancelled, whatever its worker does.
    CancelsBelieved,
    /// The Store does not compare the version of a schedule.
    TurnsNotCompared,
    /// The Store never names certain schedules as due.
    SchedulesForgotten,
    /// The Store hides certain rows of the audit trail from the process that seals them.
    RowsUnsealed,
    /// No output rule applies to any result.
    ResultsUnchecked,
    /// The Store does not list jobs whose result must be scanned.
    ScansForgotten,
    /// The Store keeps the first result of a job instead of the latest.
    FirstResultsKept,
    /// No process seals the audit trail.
    NothingSealed,
    /// The Store closes edges that are alive.
    EdgesClosedAlive,
    /// The Store closes a session whatever its epoch.
    EpochIgnored,
    /// The Store forgets the silence that a worker was promised.
    PromisesForgotten,
    /// Children are inserted without evidence about their parent.
    BirthsUnfenced,
    /// The Store treats every child as ended.
    ChildrenOverlooked,
    /// The Store does not list parents that wait for children.
    GatherForgotten,
    /// The Store does not list parents whose children must be stopped.
    DisownForgotten,
    /// The edge treats any report for a job as one of its current attempt.
    FenceIgnored,
    /// The edge treats an attempt as over when its worker was told to stop, whatever the worker does.
    StopsBelieved,
    /// The Store shows a job as waiting for its lost attempt while the next one runs.
    GuessesKept,
    /// The kernel allows everything.
    EverythingAllowed,
    /// Lanes never return certain jobs.
    JobsNeverClaimed,
    /// Lanes never free the limits of ended attempts.
    LimitsNeverFreed,
    /// Lanes ignore limits.
    LimitsIgnored,
    /// Processes follow every jump of their clocks at once.
    JumpsFollowed,
    /// Harmless: lanes give a claim to the next caller as well.
    ClaimsDoubled,
    /// Harmless: every process believes that it leads, all the time.
    EverybodyLeads,
    /// Harmless: every bell rings three times.
    BellsTripled,
}
