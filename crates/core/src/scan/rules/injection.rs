//! Phrases of attacks on shells, databases and models.

use super::{Probe, leads};

pub(super) static PROBES: [Probe; 18] = [
    Probe::phrase(
        "shell_injection",
        &["rm -"],
        r"rm -(?:[a-z]{0,4}(?:rf|fr)[a-z]{0,4}|r -f|f -r) (?:--no-preserve-root )?(?:/|~|\*|\$HOME)",
    ),
    Probe::phrase(
        "shell_injection",
        &["curl ", "wget "],
        r"(?:curl|wget)\s[^|\n]{1,300}\|\s{0,4}(?:sudo )?(?:ba|z|k|da)?sh(?:$|[^a-z0-9_.-])",
    )
    .lead(before_pipe),
    Probe::phrase(
        "shell_injection",
        &["$(", "`"],
        r"(?:\$\(|`)\s{0,4}(?:curl |wget |nc |bash |cat /etc/|rm -|whoami|id[`)])",
    )
    .lead(leads::anywhere),
    Probe::phrase("shell_injection", &["/dev/tcp/", "/dev/udp/"], r"/dev/(?:tcp|udp)/[a-z0-9.$_{}-]{1,253}/[0-9$]")
        .lead(leads::anywhere),
    Probe::phrase(
        "shell_injection",
        &["nc -", "ncat -", "netcat -"],
        r"(?:nc|ncat|netcat) (?:-[a-z]{1,6} ){0,3}-[a-z]{0,5}[ec] (?:/bin/)?(?:ba)?sh",
    ),
    Probe::phrase("shell_injection", &["bash -i", "sh -i"], r"(?:ba)?sh -i\s{0,4}(?:[0-9]?>&|<&|<\s)"),
    Probe::phrase("shell_injection", &["cat /etc/"], r"cat /etc/(?:passwd|shadow|sudoers)").lead(after_separator),
    Probe::phrase("sql_injection", &["or 1=1", "or 1 = 1", "or true"], r"or (?:1\s?=\s?1|true)\s{0,4}(?:--|#|/\*|;|'|$)")
        .lead(leads::after_value),
    Probe::phrase("sql_injection", &["or '", "and '"], r"(?:or|and) '[^']{0,16}'\s{0,4}(?:=|like)\s{0,4}'")
        .lead(leads::after_value),
    Probe::phrase("sql_injection", &["union"], "union (?:all |distinct )?select ").lead(leads::after_quote),
    Probe::phrase(
        "sql_injection",
        &["drop ", "truncate ", "delete ", "insert ", "update ", "exec "],
        "(?:(?:drop|truncate) (?:table|database)|delete from|insert into|update [a-z_]{1,64} set|exec (?:xp_|sp_|master))",
    )
    .lead(after_quote_and_semicolon),
    Probe::phrase(
        "sql_injection",
        &["waitfor ", "pg_sleep(", "sleep(", "benchmark("],
        r"(?:waitfor delay '|pg_sleep\([0-9]|sleep\([0-9]{1,4}\)|benchmark\([0-9])",
    )
    .lead(after_break_out),
    Probe::phrase(
        "prompt_injection",
        &["ignore", "disregard", "forget", "override", "bypass"],
        concat!(
            "(?:ignore|disregard|forget|override|bypass) ",
            "(?:(?:all|any|the|your|my|our|these|those|of|every|everything|in) ){0,4}",
            "(?:previous|prior|above|earlier|preceding|foregoing|existing|former|system|safety) (?:[a-z]{1,16} )?",
            "(?:instruction|prompt|rule|direction|guideline|message|command|context|polic)"
        ),
    ),
    Probe::phrase(
        "prompt_injection",
        &["reveal", "print", "show", "repeat", "output", "leak", "expose", "disclose"],
        concat!(
            "(?:reveal|print|show|repeat|output|leak|expose|disclose) (?:me |us )?(?:your|the) ",
            "(?:(?:full|entire|hidden|initial|original|exact|secret|whole) ){0,2}",
            "(?:system|developer) (?:prompt|message|instructions)"
        ),
    ),
    Probe::phrase(
        "prompt_injection",
        &["you are now"],
        r"you are now (?:in )?(?:an? )?(?:DAN\b|developer mode|jailbroken|unrestricted|unfiltered|free (?:of|from) )",
    ),
    Probe::phrase("prompt_injection", &["do anything now"], r"do anything now\b"),
    Probe::phrase(
        "prompt_injection",
        &["pretend", "act as if"],
        "(?:pretend|act as if) (?:that )?you (?:have|had) no (?:restriction|rule|limit|guideline|filter)",
    ),
    Probe::phrase(
        "prompt_injection",
        &["<|im_start|>", "<|system|>", "[system]", "<<sys>>"],
        r"(?:<\|im_start\|>\s{0,4}system|<\|system\|>|<<sys>>|\[system\]\s{0,4}\(?#)",
    )
    .lead(leads::anywhere),
];

/// A download piped into a shell. Checked by hand, because a text full of downloads must not start a regex at each.
fn before_pipe(text: &[u8], at: usize) -> Option<usize> {
    const REACH: usize = 300;
    const SHELLS: [&[u8]; 6] = [b"sh", b"bash", b"zsh", b"ksh", b"dash", b"sudo "];
    let line = &text[at..text.len().min(at + REACH)];
    let stop = line.iter().position(|b| matches!(b, b'|' | b'\n')).filter(|stop| line[*stop] == b'|')?;
    let command = text[at + stop + 1..].trim_ascii_start();
    SHELLS.iter().any(|shell| command.starts_with(shell)).then(|| leads::word(text, at))?
}

/// A command that follows another one.
fn after_separator(text: &[u8], at: usize) -> Option<usize> {
    let last = text[..at].iter().rev().take(4).find(|b| **b != b' ')?;
    matches!(last, b';' | b'|' | b'&' | b'`' | b'(').then_some(at)
}

/// A statement after a quote and a semicolon that cut the previous one short.
fn after_quote_and_semicolon(text: &[u8], at: usize) -> Option<usize> {
    const REACH: usize = 8;
    let semicolon = text[..at].iter().rev().take(REACH).position(|b| *b != b' ')?;
    let end = at - semicolon - 1;
    (text[end] == b';').then(|| leads::after_quote(text, end)).flatten().map(|_| at)
}

/// A call that no query contains by itself: it follows a quote, or the keyword by which an attack left a quoted value.
fn after_break_out(text: &[u8], at: usize) -> Option<usize> {
    const REACH: usize = 24;
    let window = &text[at.saturating_sub(REACH)..at];
    let quote = window.iter().rposition(|b| *b == b'\'')?;
    let between = window[quote + 1..].to_ascii_lowercase();
    let words = between.split(|b| !b.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    words.into_iter().all(|word| matches!(word, b"or" | b"and" | b"select" | b"if" | b"xor")).then_some(at)
}
