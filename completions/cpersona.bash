# bash completion for cpersona; written by `python -m cpersona_cli.manual`, starts no program
_cpersona() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" at="" i known
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${COMP_WORDS[i]}" in -*) continue ;; esac
    case "$at ${COMP_WORDS[i]}" in
      " associate"|" associate declare"|" associate list"|" associate retract"|" backup"|" calibrate"|" call"|" canary"|" canary add"|" canary list"|" canary remove"|" canary run"|" config"|" config path"|" config show"|" context"|" daemon"|" daemon logs"|" daemon restart"|" daemon run"|" daemon socket"|" daemon start"|" daemon status"|" daemon stop"|" delete"|" doctor"|" episode"|" episode archive"|" episode delete"|" episode list"|" exists"|" export"|" forget-agent"|" get"|" git"|" git backfill"|" git install"|" git note"|" git status"|" git uninstall"|" health"|" help"|" import"|" list"|" lock"|" merge"|" pause"|" precision"|" precision clear"|" precision get"|" precision set"|" profile"|" profile set"|" profile show"|" recall"|" reconstruct"|" reindex"|" restore"|" resume"|" store"|" traverse"|" undo"|" unlock"|" update") at="$at ${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at:$before" in
    " calibrate:--method") COMPREPLY=($(compgen -W "separation percentile zscore" -- "$word")); return ;;
    " store:--on-conflict") COMPREPLY=($(compgen -W "skip update fail" -- "$word")); return ;;
    " store:--check-secrets") COMPREPLY=($(compgen -W "warn refuse" -- "$word")); return ;;
  esac
  case "$at" in
    "") known="store update delete lock unlock episode profile undo recall get list context reconstruct traverse associate exists calibrate precision export import backup restore merge forget-agent health reindex canary doctor pause resume daemon config call git help --db --agent --project --channel --json -q --quiet --help --version" ;;
    " associate") known="declare retract list --help" ;;
    " associate declare") known="--entity --alias --relation --anchor --agent --project --channel --json -q --quiet --db --help" ;;
    " associate list") known="--agent --project --channel --json -q --quiet --db --help" ;;
    " associate retract") known="--relation --mention --agent --project --channel --json -q --quiet --db --help" ;;
    " backup") known="--json -q --quiet --db --help" ;;
    " calibrate") known="--method --sample-size --percentile --z-factor --all-agents --dry-run --rollback --agent --json -q --quiet --db --help" ;;
    " call") known="--stdin --set --deadline --json -q --quiet --db --help" ;;
    " canary") known="add list run remove --help" ;;
    " canary add") known="--agent --project --channel --json -q --quiet --db --help" ;;
    " canary list") known="--all-agents --agent --json -q --quiet --db --help" ;;
    " canary remove") known="--agent --json -q --quiet --db --help" ;;
    " canary run") known="--all-agents --agent --json -q --quiet --db --help" ;;
    " config") known="show path --help" ;;
    " config path") known="--json -q --quiet --db --help" ;;
    " config show") known="--json -q --quiet --db --help" ;;
    " context") known="--history -n --limit --source-id --full --deep --as-of --set --no-wait --fields --format -0 --null --max-chars --agent --project --channel --json -q --quiet --db --help" ;;
    " daemon") known="start stop restart status run logs socket --help" ;;
    " daemon logs") known="-n --lines -f --follow -q --quiet --db --help" ;;
    " daemon restart") known="--timeout --json -q --quiet --db --help" ;;
    " daemon run") known="--db --help" ;;
    " daemon socket") known="-q --quiet --db --help" ;;
    " daemon start") known="--json -q --quiet --db --help" ;;
    " daemon status") known="--json -q --quiet --db --help" ;;
    " daemon stop") known="--timeout --json -q --quiet --db --help" ;;
    " delete") known="--agent --json -q --quiet --db --help" ;;
    " doctor") known="--json -q --quiet --db --help" ;;
    " episode") known="archive list delete --help" ;;
    " episode archive") known="--keywords --history --resolved --fail-if-cut --agent --project --channel --json -q --quiet --db --help" ;;
    " episode delete") known="--agent --json -q --quiet --db --help" ;;
    " episode list") known="-n --limit --all-agents --fields --format -0 --null --max-chars --agent --project --channel --json -q --quiet --db --help" ;;
    " exists") known="--source-id --agent --project --channel --json -q --quiet --db --help" ;;
    " export") known="--all-agents --embeddings --agent --json -q --quiet --db --help" ;;
    " forget-agent") known="--yes --json -q --quiet --db --help" ;;
    " get") known="--raw --fields --format -0 --null --max-chars --agent --json -q --quiet --db --help" ;;
    " git") known="install uninstall status note backfill --help" ;;
    " git backfill") known="--all --batch --agent --project --json -q --quiet --db --help" ;;
    " git install") known="--agent --project --json -q --quiet --db --help" ;;
    " git note") known="--queue --agent --project --json -q --quiet --db --help" ;;
    " git status") known="--agent --project --json -q --quiet --db --help" ;;
    " git uninstall") known="--json -q --quiet --help" ;;
    " health") known="--fix --deep --check --of --json -q --quiet --db --help" ;;
    " help") known="-q --quiet --help" ;;
    " import") known="--dry-run --to-agent --batch --fail-if-cut --json -q --quiet --db --help" ;;
    " list") known="-n --limit --since --until --as-of --all-agents --fields --format -0 --null --max-chars --agent --project --channel --json -q --quiet --db --help" ;;
    " lock") known="--agent --json -q --quiet --db --help" ;;
    " merge") known="--move --dry-run --json -q --quiet --db --help" ;;
    " pause") known="--for --session --status --json -q --quiet --db --help" ;;
    " precision") known="get set clear --help" ;;
    " precision clear") known="--agent --json -q --quiet --db --help" ;;
    " precision get") known="--agent --json -q --quiet --db --help" ;;
    " precision set") known="--agent --json -q --quiet --db --help" ;;
    " profile") known="show set --help" ;;
    " profile set") known="--fail-if-cut --agent --json -q --quiet --db --help" ;;
    " profile show") known="--agent --json -q --quiet --db --help" ;;
    " recall") known="-n --limit --source-id --exclude --full --deep --best-first --top --fields --format -0 --null --max-chars --absolute --as-of --set --no-wait --fail-empty --explain --explain-all --why-not --legend --agent --project --channel --json -q --quiet --db --help" ;;
    " reconstruct") known="-n --count --top-k --max-hops --max-evidence --budget --source-id --deep --no-wait --trace --set --agent --project --channel --json -q --quiet --db --help" ;;
    " reindex") known="--json -q --quiet --db --help" ;;
    " restore") known="--check --force --json -q --quiet --db --help" ;;
    " resume") known="--session --json -q --quiet --db --help" ;;
    " store") known="--id --source --at --metadata --associations --lock --on-conflict --batch --queue --check-secrets --fail-if-skipped --fail-if-cut --jsonl --agent --project --channel --json -q --quiet --db --help" ;;
    " traverse") known="--max-hops -n --limit --source-id --agent --project --channel --json -q --quiet --db --help" ;;
    " undo") known="--all-agents --agent --json -q --quiet --db --help" ;;
    " unlock") known="--agent --json -q --quiet --db --help" ;;
    " update") known="--fail-if-cut --agent --json -q --quiet --db --help" ;;
  esac
  COMPREPLY=($(compgen -W "$known" -- "$word"))
}
complete -o default -F _cpersona cpersona
