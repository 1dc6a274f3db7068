# bash completion for cpersona; written by `python -m cpersona_cli.manual`. Names and refs are asked of `cpersona __complete`, which starts no daemon
_cpersona_valued() {
  case "$1" in
    "") [[ " --db --host --agent --project --channel --session " == *" $2 "* ]] ;;
    " associate declare") [[ " --entity --alias --relation --anchor --session --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " associate list") [[ " --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " associate retract") [[ " --relation --mention --session --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " backup") [[ " --db --host " == *" $2 "* ]] ;;
    " batches") [[ " -n --limit --agent --db --host " == *" $2 "* ]] ;;
    " calibrate") [[ " --method --sample-size --percentile --z-factor --svg --session --agent --db --host " == *" $2 "* ]] ;;
    " call") [[ " --set --deadline --db --host " == *" $2 "* ]] ;;
    " canary add") [[ " --id --session --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " canary list") [[ " --agent --db --host " == *" $2 "* ]] ;;
    " canary remove") [[ " --session --agent --db --host " == *" $2 "* ]] ;;
    " canary run") [[ " --svg --agent --db --host " == *" $2 "* ]] ;;
    " config edit") [[ " --db " == *" $2 "* ]] ;;
    " config path") [[ " --db " == *" $2 "* ]] ;;
    " config set") [[ " --db " == *" $2 "* ]] ;;
    " config show") [[ " --db " == *" $2 "* ]] ;;
    " context") [[ " --history -n --limit --source-id --since --until --as-of --set --fields --format --max-chars --json-fields --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " daemon logs") [[ " -n --lines --db " == *" $2 "* ]] ;;
    " daemon pipe") [[ " --db " == *" $2 "* ]] ;;
    " daemon restart") [[ " --timeout --db " == *" $2 "* ]] ;;
    " daemon run") [[ " --db " == *" $2 "* ]] ;;
    " daemon socket") [[ " --db " == *" $2 "* ]] ;;
    " daemon start") [[ " --db --host " == *" $2 "* ]] ;;
    " daemon status") [[ " --db --host " == *" $2 "* ]] ;;
    " daemon stop") [[ " --timeout --db " == *" $2 "* ]] ;;
    " daemon unit") [[ " --group " == *" $2 "* ]] ;;
    " delete") [[ " --id --session --agent --project --db --host " == *" $2 "* ]] ;;
    " doctor") [[ " --db " == *" $2 "* ]] ;;
    " edit") [[ " --id --session --agent --project --db --host " == *" $2 "* ]] ;;
    " episode archive") [[ " --keywords --history --session --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " episode delete") [[ " --session --agent --db --host " == *" $2 "* ]] ;;
    " episode list") [[ " -n --limit --fields --format --max-chars --json-fields --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " exists") [[ " --source-id --since --until --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " explore") [[ " -n --limit --since --until --session --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " export") [[ " --for --agent --db --host " == *" $2 "* ]] ;;
    " forget-agent") [[ " --session --db --host " == *" $2 "* ]] ;;
    " get") [[ " --id --as-of --fields --format --max-chars --json-fields --agent --project --db --host " == *" $2 "* ]] ;;
    " git backfill") [[ " --batch --session --agent --project --db --host " == *" $2 "* ]] ;;
    " git blame-note") [[ " -n --limit --fields --format --max-chars --json-fields --agent --project --db --host " == *" $2 "* ]] ;;
    " git install") [[ " --agent --project --db " == *" $2 "* ]] ;;
    " git note") [[ " --session --agent --project --db --host " == *" $2 "* ]] ;;
    " git status") [[ " --agent --project --db " == *" $2 "* ]] ;;
    " grep") [[ " -n --limit --source-id --since --until --fields --format --max-chars --json-fields --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " health") [[ " --check --of --session --db --host " == *" $2 "* ]] ;;
    " history") [[ " --id -n --limit --agent --project --db --host " == *" $2 "* ]] ;;
    " import") [[ " --to-agent --batch --format --every --session --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " list") [[ " -n --limit --since --until --as-of --source-id --batch --id-prefix --fields --format --max-chars --json-fields --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " lock") [[ " --id --session --agent --project --db --host " == *" $2 "* ]] ;;
    " mcp") [[ " --tools --session --agent --project --db --host " == *" $2 "* ]] ;;
    " merge") [[ " --session --db --host " == *" $2 "* ]] ;;
    " pause") [[ " --for --session --db --host " == *" $2 "* ]] ;;
    " precision clear") [[ " --session --agent --db --host " == *" $2 "* ]] ;;
    " precision get") [[ " --agent --db --host " == *" $2 "* ]] ;;
    " precision set") [[ " --session --agent --db --host " == *" $2 "* ]] ;;
    " profile set") [[ " --session --agent --db --host " == *" $2 "* ]] ;;
    " profile show") [[ " --agent --db --host " == *" $2 "* ]] ;;
    " recall") [[ " -n --limit --source-id --exclude --fields --format --max-chars --json-fields --since --until --as-of --set --why-not --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " reconstruct") [[ " -n --count --top-k --max-hops --max-evidence --budget --source-id --set --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " reindex") [[ " --db --host " == *" $2 "* ]] ;;
    " restore") [[ " --db " == *" $2 "* ]] ;;
    " restore-memory") [[ " --session --agent --project --db --host " == *" $2 "* ]] ;;
    " resume") [[ " --session --db --host " == *" $2 "* ]] ;;
    " stats") [[ " --days --svg --agent --db --host " == *" $2 "* ]] ;;
    " status") [[ " --db --host " == *" $2 "* ]] ;;
    " store") [[ " --id --source --at --metadata --associations --on-conflict --batch --check-secrets --jsonl --session --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " traverse") [[ " --max-hops -n --limit --source-id --agent --project --channel --db --host " == *" $2 "* ]] ;;
    " undo") [[ " --session --agent --db --host " == *" $2 "* ]] ;;
    " unlock") [[ " --id --session --agent --project --db --host " == *" $2 "* ]] ;;
    " update") [[ " --id --session --agent --project --db --host " == *" $2 "* ]] ;;
    *) false ;;
  esac
}
_cpersona() {
  local word before at="" i known head line found n=0 valued=""
  local -a words=()
  # `mem:1` and `--agent=x` come in pieces, where COMP_WORDBREAKS says so; here they are put together again.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    line="${COMP_WORDS[i]}"
    if ((n > 1)) && [[ $line == [:=]* || ${words[n-1]} == *[:=] ]]; then words[n-1]+="$line"; else words[n]="$line"; n=$((n + 1)); fi
  done
  word="${words[n-1]}" before="${words[n-2]}"
  for ((i = 1; i < n - 1; i++)); do
    if [[ $valued ]]; then valued=""; continue; fi
    if _cpersona_valued "$at" "${words[i]}"; then valued=1; continue; fi
    case "${words[i]}" in -*) continue ;; esac
    case "$at ${words[i]}" in
      " associate"|" associate declare"|" associate list"|" associate retract"|" backup"|" batches"|" calibrate"|" call"|" canary"|" canary add"|" canary list"|" canary remove"|" canary run"|" config"|" config edit"|" config path"|" config set"|" config show"|" context"|" daemon"|" daemon logs"|" daemon pipe"|" daemon restart"|" daemon run"|" daemon socket"|" daemon start"|" daemon status"|" daemon stop"|" daemon unit"|" delete"|" doctor"|" edit"|" episode"|" episode archive"|" episode delete"|" episode list"|" exists"|" explore"|" export"|" forget-agent"|" get"|" git"|" git backfill"|" git blame-note"|" git install"|" git note"|" git status"|" git uninstall"|" grep"|" health"|" help"|" history"|" import"|" list"|" lock"|" mcp"|" merge"|" pause"|" precision"|" precision clear"|" precision get"|" precision set"|" profile"|" profile set"|" profile show"|" recall"|" reconstruct"|" reindex"|" restore"|" restore-memory"|" resume"|" stats"|" status"|" store"|" traverse"|" undo"|" unlock"|" update") at="$at ${words[i]}" ;;
    esac
  done
  case "$at:$before" in
    " calibrate:--method") COMPREPLY=($(compgen -W "separation percentile zscore" -- "$word")); return ;;
    " export:--for") COMPREPLY=($(compgen -W "reference" -- "$word")); return ;;
    " mcp:--tools") COMPREPLY=($(compgen -W "usual all" -- "$word")); return ;;
    " store:--on-conflict") COMPREPLY=($(compgen -W "skip update fail" -- "$word")); return ;;
    " store:--check-secrets") COMPREPLY=($(compgen -W "warn refuse" -- "$word")); return ;;
  esac
  case "$at" in
    "") known="store update edit delete lock unlock episode profile undo batches history restore-memory recall explore get list context reconstruct traverse associate exists grep calibrate precision export import backup restore merge forget-agent health reindex canary stats doctor pause resume daemon status config call mcp git help --db --host --agent --project --channel --session --json -q --quiet --help --version -V" ;;
    " associate") known="declare retract list --help" ;;
    " associate declare") known="--entity --alias --relation --anchor --session --agent --project --channel --json -q --quiet --db --host --help" ;;
    " associate list") known="--agent --project --channel --json -q --quiet --db --host --help" ;;
    " associate retract") known="--relation --mention --session --agent --project --channel --json -q --quiet --db --host --help" ;;
    " backup") known="--json -q --quiet --db --host --help" ;;
    " batches") known="-n --limit --all-agents --agent --json -q --quiet --db --host --help" ;;
    " calibrate") known="--method --sample-size --percentile --z-factor --all-agents --dry-run --rollback --plot --svg --session --agent --json -q --quiet --db --host --help" ;;
    " call") known="--stdin --set --deadline --json -q --quiet --db --host --help" ;;
    " canary") known="add list run remove --help" ;;
    " canary add") known="--id --session --agent --project --channel --json -q --quiet --db --host --help" ;;
    " canary list") known="--all-agents --agent --json -q --quiet --db --host --help" ;;
    " canary remove") known="--session --agent --json -q --quiet --db --host --help" ;;
    " canary run") known="--all-agents --plot --svg --agent --json -q --quiet --db --host --help" ;;
    " config") known="show path set edit --help" ;;
    " config edit") known="--json -q --quiet --db --help" ;;
    " config path") known="--json -q --quiet --db --help" ;;
    " config set") known="--json -q --quiet --db --help" ;;
    " config show") known="--json -q --quiet --db --help" ;;
    " context") known="--history -n --limit --source-id --full --deep --since --until --as-of --set --no-wait --fields --format -0 --null --max-chars --json-fields --agent --project --channel --json -q --quiet --db --host --help" ;;
    " daemon") known="start stop restart status run logs socket unit pipe --help" ;;
    " daemon logs") known="-n --lines -f --follow -q --quiet --db --help" ;;
    " daemon pipe") known="--create --no-start --db --help" ;;
    " daemon restart") known="--timeout --json -q --quiet --db --help" ;;
    " daemon run") known="--db --help" ;;
    " daemon socket") known="-q --quiet --db --help" ;;
    " daemon start") known="--json -q --quiet --db --host --help" ;;
    " daemon status") known="--watch --json -q --quiet --db --host --help" ;;
    " daemon stop") known="--timeout --json -q --quiet --db --help" ;;
    " daemon unit") known="--group -q --quiet --help" ;;
    " delete") known="--id --purge --session --agent --project --json -q --quiet --db --host --help" ;;
    " doctor") known="--json -q --quiet --db --help" ;;
    " edit") known="--id --fail-if-cut --session --agent --project --json -q --quiet --db --host --help" ;;
    " episode") known="archive list delete --help" ;;
    " episode archive") known="--keywords --history --resolved --fail-if-cut --session --agent --project --channel --json -q --quiet --db --host --help" ;;
    " episode delete") known="--session --agent --json -q --quiet --db --host --help" ;;
    " episode list") known="-n --limit --all-agents --fields --format -0 --null --max-chars --json-fields --agent --project --channel --json -q --quiet --db --host --help" ;;
    " exists") known="--source-id --since --until --agent --project --channel --json -q --quiet --db --host --help" ;;
    " explore") known="-n --limit --deep --since --until --session --agent --project --channel -q --quiet --db --host --help" ;;
    " export") known="--all-agents --embeddings --for --agent --json -q --quiet --db --host --help" ;;
    " forget-agent") known="--yes --session --json -q --quiet --db --host --help" ;;
    " get") known="--id --as-of --raw --fields --format -0 --null --max-chars --json-fields --agent --project --json -q --quiet --db --host --help" ;;
    " git") known="install uninstall status note backfill blame-note --help" ;;
    " git backfill") known="--all --batch --session --agent --project --json -q --quiet --db --host --help" ;;
    " git blame-note") known="-n --limit --fields --format -0 --null --max-chars --json-fields --agent --project --json -q --quiet --db --host --help" ;;
    " git install") known="--agent --project --json -q --quiet --db --help" ;;
    " git note") known="--queue --session --agent --project --json -q --quiet --db --host --help" ;;
    " git status") known="--agent --project --json -q --quiet --db --help" ;;
    " git uninstall") known="--json -q --quiet --help" ;;
    " grep") known="-E --regex -i --ignore-case -l --refs -n --limit --source-id --since --until --fields --format -0 --null --max-chars --json-fields --agent --project --channel --json -q --quiet --db --host --help" ;;
    " health") known="--fix --deep --check --of --session --json -q --quiet --db --host --help" ;;
    " help") known="-q --quiet --help" ;;
    " history") known="--id -n --limit --agent --project --json -q --quiet --db --host --help" ;;
    " import") known="--dry-run --to-agent --batch --wait --progress --fail-if-cut --keep-vectors --markdown --format --prune --yes --watch --every --session --agent --project --channel --json -q --quiet --db --host --help" ;;
    " list") known="-n --limit --since --until --as-of --source-id --locked --batch --id-prefix --all-agents --fields --format -0 --null --max-chars --json-fields --agent --project --channel --json -q --quiet --db --host --help" ;;
    " lock") known="--id --session --agent --project --json -q --quiet --db --host --help" ;;
    " mcp") known="--tools --read-only --print-config --session --agent --project -q --quiet --db --host --help" ;;
    " merge") known="--move --dry-run --session --json -q --quiet --db --host --help" ;;
    " pause") known="--for --status --session --json -q --quiet --db --host --help" ;;
    " precision") known="get set clear --help" ;;
    " precision clear") known="--session --agent --json -q --quiet --db --host --help" ;;
    " precision get") known="--agent --json -q --quiet --db --host --help" ;;
    " precision set") known="--session --agent --json -q --quiet --db --host --help" ;;
    " profile") known="show set --help" ;;
    " profile set") known="--fail-if-cut --session --agent --json -q --quiet --db --host --help" ;;
    " profile show") known="--agent --json -q --quiet --db --host --help" ;;
    " recall") known="-n --limit --source-id --exclude --full --deep --best-first --top --fields --format -0 --null --max-chars --json-fields --absolute --since --until --as-of --set --no-wait --fail-empty --explain --explain-all --why-not --legend --agent --project --channel --json -q --quiet --db --host --help" ;;
    " reconstruct") known="-n --count --top-k --max-hops --max-evidence --budget --source-id --deep --no-wait --trace --set --agent --project --channel --json -q --quiet --db --host --help" ;;
    " reindex") known="--vectors --wait --progress --json -q --quiet --db --host --help" ;;
    " restore") known="--check --settings --force --json -q --quiet --db --help" ;;
    " restore-memory") known="--session --agent --project --json -q --quiet --db --host --help" ;;
    " resume") known="--session --json -q --quiet --db --host --help" ;;
    " stats") known="--days --svg --agent --json -q --quiet --db --host --help" ;;
    " status") known="--watch --json -q --quiet --db --host --help" ;;
    " store") known="--id --source --at --metadata --associations --lock --on-conflict --batch --queue --check-secrets --fail-if-skipped --fail-if-cut --wait --progress --edit --jsonl --session --agent --project --channel --json -q --quiet --db --host --help" ;;
    " traverse") known="--max-hops -n --limit --source-id --agent --project --channel --json -q --quiet --db --host --help" ;;
    " undo") known="--all-agents --dry-run --yes --session --agent --json -q --quiet --db --host --help" ;;
    " unlock") known="--id --session --agent --project --json -q --quiet --db --host --help" ;;
    " update") known="--id --fail-if-cut --session --agent --project --json -q --quiet --db --host --help" ;;
  esac
  case "$at" in ""|" associate"|" canary"|" config"|" daemon"|" episode"|" git"|" precision"|" profile") ;; *) [[ $word == -* && $word != --*=* ]] || valued=1 ;; esac
  if [[ $valued || $word == --*=* ]]; then
    COMPREPLY=()
    found="$("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)" || return
    head="${word%"${word##*[:=]}"}"
    [[ $head && $COMP_WORDBREAKS == *"${head: -1}"* ]] || head=""
    while IFS=$'\t' read -r line _; do
      [[ $line ]] || continue
      line="${line#"$head"}"
      [[ $line == *= ]] && compopt -o nospace 2>/dev/null
      [[ $line == *[^A-Za-z0-9_.,:=/@%+-]* ]] && printf -v line %q "$line"
      COMPREPLY+=("$line")
    done <<< "$found"
    [[ ${COMPREPLY[0]} || $word || $before == -* ]] && { compopt +o default 2>/dev/null; return; }
  fi
  COMPREPLY=($(compgen -W "$known" -- "$word"))
}
complete -o default -F _cpersona cpersona
