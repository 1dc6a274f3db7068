"""The completion scripts of the shells, written from the command tree.

Each shell has a script with places for what the tree fills in: the commands, their options and arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import NamedTuple

from . import catalogue, spec

_HEAD = (
    "{} completion for cpersona; written by `python -m cpersona_cli.manual`. Names and refs are asked of "
    "`cpersona __complete`, which starts no daemon"
)


class Place(NamedTuple):
    """A place on the command line behind the words of ``path``, and what may follow there."""

    path: tuple[str, ...]
    commands: list[str]
    options: list[spec.Parameter]
    arguments: list[spec.Parameter]

    @property
    def label(self) -> str:
        """The path as the scripts hold it: each word behind a space."""
        return "".join(" " + word for word in self.path)


def places() -> list[Place]:
    """Return every place of the command tree in the order of their paths, that before any word first."""
    found = [Place((), list(catalogue.ENTRIES), list(spec.COMMON.values()), [])]
    for name in catalogue.FAMILIES:
        found.append(Place((name,), [command.path[1] for command in catalogue.declared(name)], [], []))
    for command in catalogue.tree():
        parameters = (*command.parameters, *(spec.COMMON[name] for name in command.common))
        arguments = [parameter for parameter in command.parameters if not parameter.flags]
        found.append(Place(command.path, [], [p for p in parameters if p.flags], arguments))
    return sorted({place.path: place for place in found}.values(), key=lambda place: place.path)


def completions() -> dict[str, str]:
    """Return the completion script of each shell: path below `completions/` -> text."""
    return {"cpersona.bash": _bash(), "_cpersona": _zsh(), "cpersona.fish": _fish()}


def _takes_value(parameter: spec.Parameter) -> bool:
    return parameter.kind != "flag"


def _filled(script: str, **parts: list[str]) -> str:
    """Return a script whose lines `@NAME@` are the lines of that part."""
    lines: list[str] = []
    for line in script.strip("\n").split("\n"):
        lines += parts[line[1:-1].lower()] if line.startswith("@") and line.endswith("@") else [line]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _first(text: str | None) -> str:
    """Return the first paragraph of a help text as a phrase that every shell takes as it is."""
    phrase = " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split()).rstrip(".")
    return phrase.translate({ord("["): "(", ord("]"): ")", ord(":"): None})


def _phrase(path: tuple[str, ...]) -> str:
    """Return what a list of completions says of a command."""
    if len(path) == 1:
        return catalogue.ENTRIES[path[0]]
    help = next(command.help for command in catalogue.declared(path[0]) if command.path == path)
    # The first clause of a docstring is what such a list has room for.
    return _first(inspect.cleandoc(help or "").split("\n")[0].split(". ")[0].split(": ")[0])


# -- bash

_BASH = r"""
@HEAD@
_cpersona_valued() {
  case "$1" in
@VALUED@
    *) false ;;
  esac
}
_cpersona() {
  local word before at="" i known head line found n=0 valued=""
  local -a words=()
  # `mem:1` and `--agent=x` come in pieces, where COMP_WORDBREAKS says so; here they are put together again.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    line="${COMP_WORDS[i]}"
@JOINED@
  done
  word="${words[n-1]}" before="${words[n-2]}"
  for ((i = 1; i < n - 1; i++)); do
    if [[ $valued ]]; then valued=""; continue; fi
    if _cpersona_valued "$at" "${words[i]}"; then valued=1; continue; fi
    case "${words[i]}" in -*) continue ;; esac
    case "$at ${words[i]}" in
@PATHS@
    esac
  done
  case "$at:$before" in
@CHOICES@
  esac
  case "$at" in
@KNOWN@
  esac
@FAMILIES@
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
"""


def _bash() -> str:
    found = places()
    paths = sorted(place.label for place in found if place.path)
    families = "|".join(f'"{place.label}"' for place in found if place.commands)
    return _filled(
        _BASH,
        head=["# " + _HEAD.format("bash")],
        joined=[
            (
                "    if ((n > 1)) && [[ $line == [:=]* || ${words[n-1]} == *[:=] ]]; "
                'then words[n-1]+="$line"; else words[n]="$line"; n=$((n + 1)); fi'
            )
        ],
        valued=[line for place in found for line in _bash_valued(place)],
        paths=["      " + "|".join(f'"{path}"' for path in paths) + ') at="$at ${words[i]}" ;;'],
        choices=[line for place in found for line in _bash_choices(place)],
        known=[_bash_known(place) for place in found],
        families=[f'  case "$at" in {families}) ;; *) [[ $word == -* && $word != --*=* ]] || valued=1 ;; esac'],
    )


def _bash_valued(place: Place) -> Iterator[str]:
    flags = " ".join(flag for option in place.options if _takes_value(option) for flag in option.flags)
    if flags:
        yield f'    "{place.label}") [[ " {flags} " == *" $2 "* ]] ;;'


def _bash_choices(place: Place) -> Iterator[str]:
    for option in place.options:
        if option.choices:
            before = "|".join(f'"{place.label}:{flag}"' for flag in option.flags)
            yield f'    {before}) COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word")); return ;;'


def _bash_known(place: Place) -> str:
    flags = [flag for option in place.options for flag in option.flags]
    known = [*place.commands, *flags, "--help", *(() if place.path else ("--version", "-V"))]
    return f'    "{place.label}") known="{" ".join(known)}" ;;'


# -- zsh

_ZSH = r"""
#compdef cpersona
@HEAD@
_cpersona_values() {
  local found line
  local -a values
  local -i files
  found=$("${(Q)typed[1]}" __complete "${(@Q)typed[2,-1]}" 2>/dev/null); files=$?
  for line in "${(@f)found}"; do
    [[ -n $line ]] || continue
    [[ $typed[-1] == --*=* ]] && line=${line#--*=}
    values+=("${${line%%$'\t'*}//:/\\:}:${${line#*$'\t'}//:/\\:}")
  done
  (( $#values )) && _describe -V value values
  (( files == 1 )) && _files
}
_cpersona() {
  local at="" i place=1
  local -a typed=("${(@)words[1,CURRENT]}")
  for ((i = 2; i < CURRENT; i++)); do
    case "$at ${words[i]}" in
@PATHS@
    esac
  done
  # What follows the command is its own line from here on.
  words=("${(@)words[place,-1]}")
  (( CURRENT -= place - 1 ))
  case "$at" in
@KNOWN@
  esac
}
_cpersona "$@"
"""


def _zsh() -> str:
    found = places()
    paths = sorted(place.label for place in found if place.path)
    return _filled(
        _ZSH,
        head=["# " + _HEAD.format("zsh")],
        paths=["      " + "|".join(f"({_quoted(path)})" for path in paths) + ') at="$at ${words[i]}"; place=$i ;;'],
        known=[line for place in found for line in _zsh_known(place)],
    )


def _zsh_known(place: Place) -> Iterator[str]:
    yield f"    {_quoted(place.label)})"
    if place.commands:
        described = (_quoted(f"{word}:{_phrase((*place.path, word))}") for word in place.commands)
        yield from ("      local -a known", f"      known=({' '.join(described)})", "      _describe command known")
    else:
        options = (spec for option in place.options for spec in _zsh_option(option))
        arguments = (_quoted(f"{_many(p)}:{p.name}:{_zsh_action(p)}") for p in place.arguments)
        yield f"      _arguments {' '.join((*options, *arguments))}"
    yield "      ;;"


def _zsh_option(option: spec.Parameter) -> Iterator[str]:
    value = ""
    if _takes_value(option):
        value = f":{(option.metavar or option.name).replace(':', '')}:{_zsh_action(option)}"
    for flag in option.flags:
        assigned = "=" if value and flag.startswith("--") else ""
        yield _quoted(f"{_many(option)}{flag}{assigned}[{_first(option.help)}]{value}")


def _many(parameter: spec.Parameter) -> str:
    return "*" if parameter.many else ""


def _zsh_action(parameter: spec.Parameter) -> str:
    if parameter.choices:
        return f"({' '.join(parameter.choices)})"
    if parameter.values == "files":
        return "_files"
    return "_cpersona_values" if parameter.values else " "


# -- fish

_FISH = r"""
@HEAD@
function __cpersona_values
    set -l typed (commandline -opc) (commandline -ct)
    command $typed[1] __complete $typed[2..-1] 2>/dev/null | string replace -r '^--[^=]*=' ''
end
complete -c cpersona -l help -s h -d 'Show help and leave'
complete -c cpersona -n __fish_use_subcommand -l version -s V -d 'Print the version and leave'
@KNOWN@
"""


def _fish() -> str:
    known = [f"complete -c cpersona {line}" for place in places() for line in _fish_known(place)]
    return _filled(_FISH, head=["# " + _HEAD.format("fish")], known=known)


def _fish_known(place: Place) -> Iterator[str]:
    here = _quoted(_fish_condition(place))
    for word in place.commands:
        yield f"-f -n {here} -a {word} -d {_quoted(_phrase((*place.path, word)))}"
    for option in place.options:
        flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
        value = _fish_value(option) if _takes_value(option) else ""
        yield f"-n {here} {flags}{value} -d {_quoted(_first(option.help))}"
    if any(argument.values not in ("", "files") for argument in place.arguments):
        yield f"-f -k -n {here} -a '(__cpersona_values)'"


def _fish_condition(place: Place) -> str:
    if not place.path:
        return "__fish_use_subcommand"
    if place.commands:
        inner = " ".join(place.commands)
        return f"__fish_seen_subcommand_from {place.path[0]}; and not __fish_seen_subcommand_from {inner}"
    return "; and ".join(f"__fish_seen_subcommand_from {word}" for word in place.path)


def _fish_value(option: spec.Parameter) -> str:
    if option.choices:
        return " -x -a " + _quoted(" ".join(option.choices))
    if option.values == "files":
        return " -r"
    return " -x -k -a '(__cpersona_values)'" if option.values else " -x"
