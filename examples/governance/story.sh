#!/usr/bin/env bash
# The three-minute story of governance, told by a server of its own in a temporary folder.
# Needs `lockgate` in the PATH, or its place in LOCKGATE. Ends with 0 if everything went as told.
set -euo pipefail

lockgate=${LOCKGATE:-lockgate}
here=$(cd "$(dirname "$0")" && pwd)
room=$(mktemp -d)
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$room"' EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'story: %s\n' "$*" >&2; exit 1; }
has() { grep -q -- "$2" <<<"$1" || fail "expected \"$2\" in: $1"; }
lacks() { ! grep -q -- "$2" <<<"$1" || fail "did not expect \"$2\" in: $1"; }
# One field of a JSON text, without needing more than a shell.
field() { grep -o "\"$2\": *\"[^\"]*\"" <<<"$1" | head -1 | sed 's/.*: *"\(.*\)"/\1/'; }

# Starts `lockgate serve` and waits for its first line, which says where it listens: `api` afterwards. Not to be called in a
# subshell, which would keep the process id to itself.
start() { # name, address, arguments...
    local name=$1 listen=$2; shift 2
    "$lockgate" --json serve --log error --listen "$listen" --metrics 127.0.0.1:0 --data "$room/$name" "$@" >"$room/$name.out" 2>"$room/$name.err" &
    pids+=($!)
    for _ in $(seq 600); do [ -s "$room/$name.out" ] && break; sleep 0.1; done
    [ -s "$room/$name.out" ] || fail "$name did not start: $(cat "$room/$name.err")"
    api=$(field "$(cat "$room/$name.out")" api)
}

# Repeats a command until its output has what is wanted.
until_has() { # wanted, command...
    local wanted=$1 output; shift
    for _ in $(seq 600); do
        output=$("$@" 2>&1 || true)
        if grep -q -- "$wanted" <<<"$output"; then printf '%s\n' "$output"; return; fi
        sleep 0.1
    done
    fail "never saw \"$wanted\" in: $output"
}

say "The policy, checked and tested before anything runs under it"
"$lockgate" policy check "$here/policy.yaml"
"$lockgate" policy test "$here/policy.yaml" --cases "$here/cases.yaml"

start server 127.0.0.1:0 --policy "$here/policy.yaml"
export LOCKGATE_SERVER=$api
export LOCKGATE_ACTOR=ann

say "1. An ordinary job is allowed and runs"
output=$("$lockgate" submit job.echo --payload '{"hello":"world"}' --wait)
has "$output" world

say "2. A destructive agent is denied, and told by which rule and what to do instead"
"$lockgate" --actor-type agent submit job.echo --job-id denied --risk-tag destructive >/dev/null || true
output=$("$lockgate" why denied)
printf '%s\n' "$output"
has "$output" no-destructive-agents
has "$output" "Submit it as a person"

say "3. A payment waits for a second person; the submitter cannot be one"
"$lockgate" submit job.echo --job-id payment --label team=payments --payload '{"amount":120}' >/dev/null
"$lockgate" approvals list
if "$lockgate" approvals approve payment >/dev/null 2>&1; then fail "ann approved her own job"; fi
"$lockgate" --actor bob approvals approve payment --note "the invoice is in order"
until_has SUCCEEDED "$lockgate" get payment >/dev/null

say "4. A secret is cut out of a result before it comes out"
secret="AKIA$(printf 'QWERTYUIOPASDFGH')"
"$lockgate" submit job.echo --job-id config --label data=config --payload "{\"key\":\"$secret\",\"region\":\"eu\"}" >/dev/null
output=$(until_has SUCCEEDED "$lockgate" get config --json)
result=$(grep -o '"result":.*' <<<"$output" || printf '%s' "$output")
has "$result" REDACTED
lacks "$result" "$secret"

say "5. A card number is held back until a person lets it go"
"$lockgate" submit job.echo --job-id order --label data=orders --payload '{"card":"4111 1111 1111 1111"}' >/dev/null
until_has OUTPUT_QUARANTINED "$lockgate" get order >/dev/null
"$lockgate" why order
"$lockgate" --actor bob release order --note "a test card"
has "$("$lockgate" get order)" SUCCEEDED

say "6. The safety kernel is away, the fail mode is open: the job runs, marked, and is judged when the kernel is back"
start kernel 127.0.0.1:0 --roles kernel --policy "$here/policy.yaml"
kernel_pid=${pids[-1]}
address=${api#http://}
start governed 127.0.0.1:0 --safety-kernel "$address" --safety-kernel-insecure --safety-kernel-retry 2s --fail-mode open
export LOCKGATE_SERVER=$api
has "$("$lockgate" submit job.echo --payload '"judged elsewhere"' --wait)" "judged elsewhere"
kill "$kernel_pid"; wait "$kernel_pid" 2>/dev/null || true
has "$("$lockgate" --actor-type agent submit job.echo --job-id unjudged --risk-tag destructive --payload '"nobody looked"' --wait)" \
    "nobody looked"
has "$("$lockgate" get unjudged --json)" safety_bypassed
"$lockgate" breaker
rm "$room/kernel.out"
start kernel "$address" --roles kernel --policy "$here/policy.yaml"
until_has bypass_refused "$lockgate" audit list >/dev/null
"$lockgate" watch unjudged

say "Everything above is in the audit trail, sealed"
"$lockgate" audit list
"$lockgate" audit verify
