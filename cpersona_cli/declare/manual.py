"""The manual pages and the shell completions, written from the command tree and the settings table.

`python -m cpersona_cli.manual` rewrites `man/` and `completions/` of a checkout; a test holds what is
there to what this module would write, so the two cannot drift apart.
"""

import inspect
import os

from cpersona_daemon import __version__
from cpersona_daemon.shared import fields, settings

from . import catalogue, spec

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SCOPES = {
    settings.PLACE: ("Where things live", "Read before a daemon can be found."),
    settings.CLIENT: ("The command line", "Read by the command line alone."),
    settings.RETRIEVAL: (
        "Retrieval",
        "May also change for one request: `recall --set NAME=VALUE`, or `overrides` on the wire.",
    ),
    settings.DAEMON: ("The daemon", "Fixed when the daemon starts; `cpersona daemon restart` applies a change."),
}
_EXITS = (
    (fields.EXIT_OK, "done: stored, skipped as a duplicate, queued, rows, or an honestly empty recall"),
    (fields.EXIT_FAILED, "refused or failed; in a batch: any line was rejected"),
    (fields.EXIT_USAGE, "the command line is wrong"),
    (fields.EXIT_NOTHING, "nothing found (--fail-empty), or skipped (--fail-if-skipped)"),
    (fields.EXIT_UNREACHABLE, "the daemon cannot be started or reached, or there is no database"),
    (fields.EXIT_DENIED, "permission denied"),
    (fields.EXIT_RETRY, "timed out or busy: try again"),
    (fields.EXIT_CRITICAL, "health found a critical problem"),
    (fields.EXIT_INTERRUPTED, "interrupted"),
)
_DAEMON = """
The daemon of cpersona holds one SQLite database and a vector index, and answers requests on a
Unix socket. The client starts it on demand; it leaves after CPERSONA_IDLE_TIMEOUT seconds without work.
One daemon serves one database, which it keeps locked as long as it lives.

SIGTERM and SIGINT let it finish the writes that it accepted, fold the log into the database, remove its
own socket and leave with status 0.

With socket activation (the units cpersonad.socket and cpersonad.service, or the launchd agent
org.cpersona.daemon) a service manager starts it. Nobody needs them.
"""
_DAEMON_OPTIONS = (
    (
        "--foreground",
        "Stay in the foreground and log to standard error, for a service manager; `cpersona daemon run` does this.",
    ),
    (
        "--restore FILE [--check | --settings]",
        "Put a backup in the place of the database while no daemon has it, its settings too or none, or only verify it; `cpersona restore` does this.",
    ),
    ("--doctor", "Look at the installation and print one line of JSON a check; `cpersona doctor` does this."),
    ("--version", "Print the version and leave."),
)
# What stands beside the database, by the names of ``paths.Places`` first.
_FILES = (
    (
        "db",
        "<db>",
        "The database: CPERSONA_DB_PATH, else $XDG_DATA_HOME/cpersona/cpersona.db (~/.local/share/cpersona/cpersona.db). "
        "<db>-wal and <db>-shm belong to it while a daemon runs; copying <db> alone loses what stands in them.",
    ),
    ("lock", "<db>.lock", "Held by the daemon for life; it stays when the daemon leaves."),
    (
        "start_lock",
        "<db>.start.lock",
        "Held by a client while it starts the daemon, so that many at once start one; it stays.",
    ),
    (
        "socket",
        "<db>.sock",
        "The socket: CPERSONA_SOCKET, else this, else /tmp/cpersona-<uid>/<hash>.sock where the path is over 100 bytes or others can write into its directory.",
    ),
    (
        "daemon_json",
        "<db>.daemon.json",
        "Process id, start, version, protocol and socket of the daemon that serves the database.",
    ),
    (
        "calibration",
        "<db>.calibration.json",
        "Measured thresholds. <db>.calibration.json.previous is the measure before, for `cpersona calibrate --rollback`.",
    ),
    (
        "memory_vectors",
        "<db>.memories.vec*",
        "The vector index of the memories, built anew from the database whenever it is missing, damaged or stale.",
    ),
    ("episode_vectors", "<db>.episodes.vec*", "The same of the episodes."),
    (
        "spool",
        "<db>.spool/",
        "Writes that wait for a daemon, one file each; those that it refused lie in failed/ with the reason.",
    ),
    (
        "log",
        "$XDG_STATE_HOME/cpersona/<db name>-<hash>.log",
        "The log (~/.local/state), rotated; never memory content unless the log level is debug.",
    ),
    ("", "<db>.before-restore-<time>", "What stood in the place of a restored backup; yours to delete."),
    ("", "$XDG_CONFIG_HOME/cpersona/config.toml", "Settings, see cpersona-config(5)."),
)
_DAEMON_EXITS = (
    (fields.EXIT_OK, "it served and left"),
    (fields.EXIT_FAILED, "a check of --doctor failed, or a backup cannot be restored"),
    (fields.EXIT_USAGE, "the command line is wrong"),
    (
        fields.EXIT_UNREACHABLE,
        "it could not start: settings that contradict each other, a place that cannot be used, a newer database",
    ),
    (fields.EXIT_RETRY, "another daemon serves the database"),
)


def names():
    """Return the entries of the catalogue in its order."""
    return list(catalogue.ENTRIES)


def tree():
    """Return every declared command, in the order of the catalogue."""
    return [command for name in names() for command in catalogue.declared(name)]


# -- manual pages


def _roff(text):
    """Escape text for roff: backslashes, hyphens that must stay hyphens, and dots that would begin a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))


def _paragraphs(text):
    """Render a docstring: examples and indented lines stay as they are, everything else is filled."""
    out = []
    for block in inspect.cleandoc(text).split("\n\n"):
        if block.startswith("Example") or block.startswith(" "):
            head, _, rest = block.partition("\n")
            out += [".PP", _roff(head)] if rest else [".PP"]
            out += [".nf", _roff(inspect.cleandoc(rest or head)), ".fi"]
        else:
            out += [".PP", _roff(" ".join(block.split("\n")))]
    return out


def _head(title, section, summary):
    return [
        f'.TH {title.upper()} {section} "" "cpersona {__version__}" "cpersona manual"',
        ".SH NAME",
        f"{_roff(title)} \\- {_roff(summary)}",
    ]


def _flag(parameter):
    value = (
        ""
        if parameter.kind == "flag"
        else " " + (parameter.metavar or "|".join(parameter.choices) or parameter.kind.upper())
    )
    return ", ".join(parameter.flags) + value


def _parameters(parameters):
    out = []
    for parameter in parameters:
        out += [
            ".TP",
            f"\\fB{_roff(_flag(parameter) if parameter.flags else parameter.metavar)}\\fR",
            _roff(parameter.help or ""),
        ]
    return out


def _synopsis(command):
    words = ["cpersona", *command.path, "[OPTIONS]"]
    for p in command.parameters:
        if not p.flags:
            name = p.metavar + ("..." if p.many else "")
            words.append(name if p.required else f"[{name}]")
    return " ".join(words)


def _command(command):
    out = [
        f".SS {_roff(' '.join(('cpersona', *command.path)))}",
        ".PP",
        f"\\fB{_roff(_synopsis(command))}\\fR",
        *_paragraphs(command.help),
    ]
    return out + _parameters([*command.parameters, *(spec.COMMON[name] for name in command.common)])


def _exit_section(exits=_EXITS):
    return [".SH EXIT STATUS", *_terms(exits)]


def _terms(pairs):
    return [line for term, meaning in pairs for line in (".TP", f"\\fB{_roff(str(term))}\\fR", _roff(meaning))]


def _see_also(*pages):
    return [".SH SEE ALSO", ", ".join(f"\\fB{_roff(page)}\\fR({section})" for page, section in pages)]


def _main_page():
    out = _head("cpersona", 1, "a durable memory for agents, scripts and people")
    out += [
        ".SH SYNOPSIS",
        "\\fBcpersona\\fR [OPTIONS] COMMAND [ARGS]...",
        ".SH DESCRIPTION",
        _roff(
            "cpersona stores what it is told and gives the right thing back, by meaning and by words. A daemon that starts by itself holds "
            "one database. Data goes to standard output, everything else to standard error. The best row of a recall is the last one; "
            "a skipped duplicate is a success; an empty recall is an answer."
        ),
    ]
    for title, entries in catalogue.GROUPS:
        out += [f".SH {_roff(title.upper())}"]
        for name, phrase in entries:
            out += [".TP", f"\\fBcpersona\\-{_roff(name)}\\fR(1)", _roff(phrase)]
    out += [".SH OPTIONS", *_parameters(spec.COMMON.values()), *_exit_section()]
    return out + _see_also(("cpersona-config", 5), ("cpersonad", 8))


def _family_page(name):
    commands = catalogue.declared(name)
    phrase = catalogue.ENTRIES[name]
    out = _head(f"cpersona-{name}", 1, phrase)
    out += [".SH SYNOPSIS", *(line for command in commands for line in (f"\\fB{_roff(_synopsis(command))}\\fR", ".br"))]
    if name in catalogue.FAMILIES:
        out += [".SH DESCRIPTION", _roff(catalogue.FAMILIES[name])]
    out += [".SH COMMANDS" if len(commands) > 1 else ".SH COMMAND"]
    for command in commands:
        out += _command(command)
    return out + _exit_section() + _see_also(("cpersona", 1), ("cpersona-config", 5))


def _config_page():
    out = _head("cpersona-config", 5, "settings of cpersona")
    out += [
        ".SH DESCRIPTION",
        _roff(
            "Every setting is an environment variable CPERSONA_NAME and a key `name` of $XDG_CONFIG_HOME/cpersona/config.toml "
            "(~/.config/cpersona/config.toml). An option wins over the environment, the environment over the file, the file over the default. "
            "Values are trimmed and case-folded, an empty one means the default, a malformed one falls back to the default with a warning; "
            "values that contradict each other refuse to start. `cpersona config show` prints each with its origin."
        ),
    ]
    for scope, (title, text) in _SCOPES.items():
        out += [f".SH {_roff(title.upper())}", _roff(text)]
        for name in settings.SCOPED[scope]:
            s = settings.BY_NAME[name]
            default = (
                "unset"
                if s.default is None
                else "empty"
                if s.default == ""
                else str(s.default).lower()
                if s.kind == "bool"
                else str(s.default)
            )
            out += [
                ".TP",
                f"\\fB{s.variable}\\fR",
                _roff(f"{s.meaning[:1].upper()}{s.meaning[1:]}. Takes {s.range_text}; default {default}."),
            ]
    return out + _see_also(("cpersona", 1), ("cpersonad", 8))


def _daemon_page():
    out = _head("cpersonad", 8, "the daemon of cpersona")
    out += [
        ".SH SYNOPSIS",
        f"\\fBcpersonad\\fR {_roff('[--foreground]')}",
        ".SH DESCRIPTION",
        *_paragraphs(_DAEMON),
        ".SH OPTIONS",
        *_terms(_DAEMON_OPTIONS),
    ]
    out += [
        ".SH FILES",
        "Everything is made private to its owner: directories 0700, files 0600.",
        *_terms((path, meaning) for _, path, meaning in _FILES),
    ]
    return (
        out + _exit_section(_DAEMON_EXITS) + _see_also(("cpersona", 1), ("cpersona-daemon", 1), ("cpersona-config", 5))
    )


def pages():
    """Return every manual page: path below `man/` -> text."""
    out = {
        "man1/cpersona.1": _main_page(),
        "man5/cpersona-config.5": _config_page(),
        "man8/cpersonad.8": _daemon_page(),
    }
    out |= {f"man1/cpersona-{name}.1": _family_page(name) for name in names()}
    return {path: "\n".join(lines) + "\n" for path, lines in out.items()}


# -- completions


def _words():
    """Return what may follow each path: {path: (subcommands, [parameters with flags])}."""
    found = {(): (names(), list(spec.COMMON.values()))}
    for name in catalogue.FAMILIES:
        found[(name,)] = ([command.path[1] for command in catalogue.declared(name)], [])
    for command in tree():
        found[command.path] = (
            [],
            [p for p in (*command.parameters, *(spec.COMMON[c] for c in command.common)) if p.flags],
        )
    return found


_HEAD = "{} completion for cpersona; written by `python -m cpersona_cli.manual`. Names and refs are asked of `cpersona __complete`, which starts no daemon"


def _takes_value(parameter):
    return parameter.kind != "flag"


def _bash():
    out = ["# " + _HEAD.format("bash"), "_cpersona_valued() {", '  case "$1" in']
    for path, (_, parameters) in sorted(_words().items()):
        label = "".join(" " + word for word in path)
        flags = " ".join(flag for p in parameters if _takes_value(p) for flag in p.flags)
        if flags:
            out.append(f'    "{label}") [[ " {flags} " == *" $2 "* ]] ;;')
    out += [
        "    *) false ;;",
        "  esac",
        "}",
        "_cpersona() {",
        '  local word before at="" i known head line found n=0 valued=""',
        "  local -a words=()",
        "  # `mem:1` and `--agent=x` come in pieces, where COMP_WORDBREAKS says so; here they are put together again.",
        "  for ((i = 0; i <= COMP_CWORD; i++)); do",
        '    line="${COMP_WORDS[i]}"',
        '    if ((n > 1)) && [[ $line == [:=]* || ${words[n-1]} == *[:=] ]]; then words[n-1]+="$line"; else words[n]="$line"; n=$((n + 1)); fi',
        "  done",
        '  word="${words[n-1]}" before="${words[n-2]}"',
        "  for ((i = 1; i < n - 1; i++)); do",
        '    if [[ $valued ]]; then valued=""; continue; fi',
        '    if _cpersona_valued "$at" "${words[i]}"; then valued=1; continue; fi',
        '    case "${words[i]}" in -*) continue ;; esac',
        '    case "$at ${words[i]}" in',
    ]
    paths = sorted(" ".join(path) for path in _words() if path)
    out += [
        "      " + "|".join(f'" {path}"' for path in paths) + ') at="$at ${words[i]}" ;;',
        "    esac",
        "  done",
        '  case "$at:$before" in',
    ]
    for path, (_, parameters) in sorted(_words().items()):
        label = "".join(" " + word for word in path)
        for p in parameters:
            if p.choices:
                out.append(
                    "    "
                    + "|".join(f'"{label}:{flag}"' for flag in p.flags)
                    + f') COMPREPLY=($(compgen -W "{" ".join(p.choices)}" -- "$word")); return ;;'
                )
    out += ["  esac", '  case "$at" in']
    for path, (commands, parameters) in sorted(_words().items()):
        label = "".join(" " + word for word in path)
        offered = [
            *commands,
            *(flag for p in parameters for flag in p.flags),
            "--help",
            *(() if path else ("--version", "-V")),
        ]
        out.append(f'    "{label}") known="{" ".join(offered)}" ;;')
    words = "|".join(
        f'"{"".join(" " + word for word in path)}"' for path, (commands, _) in sorted(_words().items()) if commands
    )
    return out + [
        "  esac",
        '  case "$at" in ' + words + ") ;; *) [[ $word == -* && $word != --*=* ]] || valued=1 ;; esac",
        "  if [[ $valued || $word == --*=* ]]; then",
        "    COMPREPLY=()",
        '    found="$("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)" || return',
        '    head="${word%"${word##*[:=]}"}"',
        '    [[ $head && $COMP_WORDBREAKS == *"${head: -1}"* ]] || head=""',
        "    while IFS=$'\\t' read -r line _; do",
        "      [[ $line ]] || continue",
        '      line="${line#"$head"}"',
        "      [[ $line == *= ]] && compopt -o nospace 2>/dev/null",
        '      [[ $line == *[^A-Za-z0-9_.,:=/@%+-]* ]] && printf -v line %q "$line"',
        '      COMPREPLY+=("$line")',
        '    done <<< "$found"',
        "    [[ ${COMPREPLY[0]} || $word || $before == -* ]] && { compopt +o default 2>/dev/null; return; }",
        "  fi",
        '  COMPREPLY=($(compgen -W "$known" -- "$word"))',
        "}",
        "complete -o default -F _cpersona cpersona",
    ]


def _quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def _first(text):
    return (
        " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split())
        .rstrip(".")
        .replace("[", "(")
        .replace("]", ")")
        .replace(":", "")
    )


def _zsh():
    out = [
        "#compdef cpersona",
        "# " + _HEAD.format("zsh"),
        "_cpersona_values() {",
        "  local found line",
        "  local -a values",
        "  local -i files",
        '  found=$("${(Q)typed[1]}" __complete "${(@Q)typed[2,-1]}" 2>/dev/null); files=$?',
        '  for line in "${(@f)found}"; do',
        "    [[ -n $line ]] || continue",
        "    [[ $typed[-1] == --*=* ]] && line=${line#--*=}",
        "    values+=(\"${${line%%$'\\t'*}//:/\\\\:}:${${line#*$'\\t'}//:/\\\\:}\")",
        "  done",
        "  (( $#values )) && _describe -V value values",
        "  (( files == 1 )) && _files",
        "}",
        "_cpersona() {",
        '  local at="" i place=1',
        '  local -a typed=("${(@)words[1,CURRENT]}")',
        "  for ((i = 2; i < CURRENT; i++)); do",
        '    case "$at ${words[i]}" in',
    ]
    paths = sorted(" ".join(path) for path in _words() if path)
    out += [
        "      " + "|".join(f"({_quoted(' ' + path)})" for path in paths) + ') at="$at ${words[i]}"; place=$i ;;',
        "    esac",
        "  done",
        "  # What follows the command is its own line from here on.",
        '  words=("${(@)words[place,-1]}")',
        "  (( CURRENT -= place - 1 ))",
        '  case "$at" in',
    ]
    arguments = {command.path: [p for p in command.parameters if not p.flags] for command in tree()}
    for path, (commands, parameters) in sorted(_words().items()):
        label = "".join(" " + word for word in path)
        out.append(f"    {_quoted(label)})")
        if commands:
            described = [_quoted(f"{c}:{_phrase((*path, c))}") for c in commands]
            out += ["      local -a known", f"      known=({' '.join(described)})", "      _describe command known"]
        else:
            specs = []
            for p in parameters:
                value = f":{(p.metavar or p.name).replace(':', '')}:{_zsh_action(p)}" if _takes_value(p) else ""
                specs += [
                    _quoted(
                        f"{'*' if p.many else ''}{flag}{'=' if value and flag.startswith('--') else ''}[{_first(p.help)}]{value}"
                    )
                    for flag in p.flags
                ]
            specs += [_quoted(f"{'*' if p.many else ''}:{p.name}:{_zsh_action(p)}") for p in arguments[path]]
            out.append(f"      _arguments {' '.join(specs)}")
        out.append("      ;;")
    return out + ["  esac", "}", '_cpersona "$@"']


def _zsh_action(parameter):
    return (
        f"({' '.join(parameter.choices)})"
        if parameter.choices
        else "_files"
        if parameter.values == "files"
        else "_cpersona_values"
        if parameter.values
        else " "
    )


def _phrase(path):
    if len(path) == 1:
        return catalogue.ENTRIES[path[0]]
    return next(_short(command.help) for command in catalogue.declared(path[0]) if command.path == tuple(path))


def _short(text):
    """Return the first clause of a docstring, which is what a list of completions has room for."""
    return _first(inspect.cleandoc(text).split("\n")[0].split(". ")[0].split(": ")[0])


def _fish():
    out = [
        "# " + _HEAD.format("fish"),
        "function __cpersona_values",
        "    set -l typed (commandline -opc) (commandline -ct)",
        "    command $typed[1] __complete $typed[2..-1] 2>/dev/null | string replace -r '^--[^=]*=' ''",
        "end",
    ]
    out += [
        "complete -c cpersona -l help -s h -d 'Show help and leave'",
        "complete -c cpersona -n __fish_use_subcommand -l version -s V -d 'Print the version and leave'",
    ]
    arguments = {command.path: [p for p in command.parameters if not p.flags] for command in tree()}
    for path, (commands, parameters) in sorted(_words().items()):
        seen = " ".join(path)
        if not path:
            condition = "__fish_use_subcommand"
        elif commands:
            condition = f"__fish_seen_subcommand_from {seen}; and not __fish_seen_subcommand_from {' '.join(commands)}"
        else:
            condition = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path)
        for c in commands:
            out.append(f"complete -c cpersona -f -n {_quoted(condition)} -a {c} -d {_quoted(_phrase((*path, c)))}")
        for p in parameters:
            flags = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in p.flags)
            value = (
                " -x -a " + _quoted(" ".join(p.choices))
                if p.choices
                else " -r"
                if p.values == "files"
                else " -x -k -a '(__cpersona_values)'"
                if p.values
                else " -x"
            )
            out.append(
                f"complete -c cpersona -n {_quoted(condition)} {flags}{value if _takes_value(p) else ''} -d {_quoted(_first(p.help))}"
            )
        if any(p.values not in ("", "files") for p in arguments.get(path, ())):
            out.append(f"complete -c cpersona -f -k -n {_quoted(condition)} -a '(__cpersona_values)'")
    return out


def completions():
    """Return the completion script of each shell: path below `completions/` -> text."""
    return {
        path: "\n".join(lines) + "\n"
        for path, lines in (("cpersona.bash", _bash()), ("_cpersona", _zsh()), ("cpersona.fish", _fish()))
    }


def write(root=ROOT):
    """Write every page and script below ``root``, and remove those of commands that are gone."""
    for folder, texts in (("man", pages()), ("completions", completions())):
        base = os.path.join(root, folder)
        for directory, _, files in os.walk(base):
            for name in files:
                if os.path.relpath(os.path.join(directory, name), base) not in texts:
                    os.remove(os.path.join(directory, name))
        for path, text in texts.items():
            target = os.path.join(base, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8") as handle:
                handle.write(text)
