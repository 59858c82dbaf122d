//! Which bugs can be planted.

/// What is wrong with the world of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The Store does not compare the version of a job.
    VersionIgnored,
    /// The Store does not look at the evidence of a change.
    EvidenceIgnored,
    /// The engine says that attempts are lost or over time, and offers no evidence.
    EvidenceOmitted,
    /// The engine lets jobs wait for a worker that nobody has judged.
    VerdictsAssumed,
    /// The Store puts in force whatever it is given, whichever version was expected.
    ActivationsNotCompared,
    /// The Store does not compare the policy of a dispatch with the one in force.
    PolicyIgnored,
    /// The engine does not say under which states of pools it chose a worker, but which ones are in force.
    StatesAssumed,
    /// The Store forgets the last change of a large batch and says that it made it.
    BatchCutShort,
    /// The Store answers before a change is on disk; a crash loses it.
    AnsweredTooEarly,
    /// The Store drops the events of every third change.
    EventsDropped,
    /// The engine ends jobs again that have ended, otherwise than before.
    EndedTwice,
    /// The Store keeps no dead letters.
    LettersDropped,
    /// The Store does not remember idempotency keys.
    KeysForgotten,
    /// The Store's indexes never name certain jobs.
    RowsForgotten,
    /// The Store charges the client for attempts that the platform lost.
    LossesCharged,
    /// The Store does not know whose deadline has passed.
    DeadlinesForgotten,
    /// The Store does not compare the version of a run.
    StepsNotCompared,
    /// The Store forgets to tell certain runs how their jobs ended.
    NewsForgotten,
    /// A run issues each undo twice.
    UndoneTwice,
    /// The Store tells runs that certain jobs were cancelled which were done, so that nobody undoes them.
    UndoSkipped,
    /// The undos of workflows are never issued.
    UndosDropped,
    /// The Store forgets how jobs of workflows are undone.
    EntriesForgotten,
    /// The Store tells a workflow last what happened first.
    NewsReversed,
    /// A run takes an attempt for over as soon as its job is cancelled, whatever its worker does.
    CancelsBelieved,
    /// The Store does not compare the version of a schedule.
    TurnsNotCompared,
    /// The Store never names certain schedules as due.
    SchedulesForgotten,
    /// The Store does not show certain rows of the audit trail to whoever seals them.
    RowsUnsealed,
    /// No rule wants to see any result.
    ResultsUnchecked,
    /// The Store does not list whose result is to be looked at.
    ScansForgotten,
    /// The Store keeps the first result that it was given of a job.
    FirstResultsKept,
    /// Nobody seals the audit trail.
    NothingSealed,
    /// The Store closes edges that are alive.
    EdgesClosedAlive,
    /// The Store closes a session whatever its epoch.
    EpochIgnored,
    /// The Store forgets how long the silence of a worker is to be borne.
    PromisesForgotten,
    /// Children are inserted without looking at their parent.
    BirthsUnfenced,
    /// The Store takes every child for one that has ended.
    ChildrenOverlooked,
    /// The Store does not list who waits for children.
    GatherForgotten,
    /// The Store does not list who left children behind.
    DisownForgotten,
    /// The edge takes any report for a job as one of its current attempt.
    FenceIgnored,
    /// The edge takes an attempt for gone when its worker was told to stop, whatever the worker does.
    StopsBelieved,
    /// The Store says that a job waits for its lost attempt still when the next one runs.
    GuessesKept,
    /// The kernel allows everything.
    EverythingAllowed,
    /// Lanes never give certain jobs.
    JobsNeverClaimed,
    /// Lanes never free what an attempt held of a limit.
    LimitsNeverFreed,
    /// Lanes do not keep to limits.
    LimitsIgnored,
    /// Processes follow every jump of their clocks.
    JumpsFollowed,
    /// Harmless: lanes give a claim to the next who asks too.
    ClaimsDoubled,
    /// Harmless: everybody leads, all the time.
    EverybodyLeads,
    /// Harmless: every bell rings three times.
    BellsTripled,
}
