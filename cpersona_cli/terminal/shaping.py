"""How rows are printed when the caller says how: --fields, --format, -0, --max-chars and --json=NAME,…, the same in
every command that shows rows.

Contract: output.shapes.
"""

from .. import exits
from ..declare.spec import JSON_FIELDS, Parameter, option
from .output import Output, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Cell = Callable[[dict, str], str]


def shape_options(known: "Sequence[str]") -> "tuple[Parameter, ...]":
    """Declare the five options of a command whose rows have these fields."""
    return (
        option("--fields", "The columns to print, off a terminal or on it.", metavar="NAME,…", values=tuple(known)),
        option(
            "--format",
            "Print each row by this template: {NAME} is a field, \\t, \\n and {{ are what they say.",
            metavar="TEMPLATE",
        ),
        option("-0 --null", "End records with NUL and leave text as it is.", kind="flag", default=False),
        option(
            "--max-chars",
            "Characters of text to print in all, spent from the best or newest row.",
            kind="int",
            metavar="N",
            least=1,
        ),
        option(
            JSON_FIELDS,
            "The same as --json=NAME,…: JSON whose rows have these fields alone.",
            metavar="NAME,…",
            values=tuple(known),
        ),
    )


# Fields that are worked out as text and are another value in JSON.
_VALUES: "dict[str, Callable[[str], object]]" = {"rank": int, "length": int, "truncated": "true".__eq__}
_OPTIONS = ("fields", "format", "null", "max_chars", "json_fields")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}


class Shape:
    """What one command line asked for. ``names`` are the chosen columns, None where nobody chose.

    ``known`` are the names that the command's rows have; ``out`` is where they are printed, as JSON where fields of
    that are chosen. Raises Usage for a name that is none of them, and for what contradicts itself.
    """

    def __init__(
        self,
        known: "Sequence[str]",
        out: "Output",
        fields: str | None = None,
        format: str | None = None,
        null: bool = False,
        max_chars: int | None = None,
        json_fields: str | None = None,
    ) -> None:
        if json_fields is not None:
            out.use_json()
        for word, given in (("--fields", fields is not None), ("--format", format is not None), ("-0/--null", null)):
            if given and out.as_json:
                raise exits.Usage(f"--json prints the whole answer and {word} says how to print rows; give one of them")
        if fields is not None and format is not None:
            raise exits.Usage("--fields and --format both say what to print; give one of them")
        self._known, self.null, self._max_chars = known, null, max_chars
        self.names = None if fields is None else self._listed("--fields", fields)
        self._json_names = None if json_fields is None else self._listed("--json=NAME,…", json_fields)
        self._pieces = None if format is None else self._template(format)

    @classmethod
    def taken(cls, known: "Sequence[str]", out: "Output", given: dict) -> "Shape":
        """Return the shape that the options ``given`` ask for, and take its own out of them. Raises Usage."""
        return cls(known, out, **{name: given.pop(name) for name in _OPTIONS})

    @property
    def chosen(self) -> bool:
        """Whether the caller said which fields to print."""
        return self.names is not None or self._pieces is not None

    @property
    def max_chars(self) -> int | None:
        """How many characters of text may be printed in all, None for any number."""
        return self._max_chars

    def _listed(self, option: str, text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        if not names:
            raise exits.Usage(f"{option} names no column; it takes {', '.join(self._known)}")
        return [self._checked(option, name) for name in names]

    def _checked(self, option: str, name: str) -> str:
        if name not in self._known:
            raise exits.Usage(f"{option} knows no {name!r}; it takes {', '.join(self._known)}")
        return name

    def _template(self, text: str) -> list[tuple[str, str | None]]:
        """Return a template as (literal text, name of the field behind it or None) pairs."""
        if not text:
            raise exits.Usage(f"--format is empty; a field is {{NAME}}, and it takes {', '.join(self._known)}")
        pieces: list[tuple[str, str | None]] = []
        literal, at = "", 0
        while at < len(text):
            two, one = text[at : at + 2], text[at]
            if two in ("{{", "}}"):
                literal, at = literal + one, at + 2
            elif one == "\\":
                if two[1:] not in _ESCAPES or two == "\\":
                    raise exits.Usage(f"--format does not understand {two!r}; it takes \\t, \\n, \\r, \\0 and \\\\")
                literal, at = literal + _ESCAPES[two[1]], at + 2
            elif one == "{":
                name, closed, _ = text[at + 1 :].partition("}")
                if not closed:
                    raise exits.Usage("--format has a { without its }; a field is {NAME}, a brace itself {{")
                pieces.append((literal, self._checked("--format", name.strip())))
                literal, at = "", at + len(name) + 2
            elif one == "}":
                raise exits.Usage("--format has a } without its {; a field is {NAME}, a brace itself }}")
            else:
                literal, at = literal + one, at + 1
        return [*pieces, (literal, None)]

    def within(
        self, out: "Output", response: dict, name: str, text: str = "content", backwards: bool = False
    ) -> list[dict]:
        """Bring the rows ``name`` of an answer into --max-chars characters of their ``text`` and return them.

        The characters are spent in the rows' order, or ``backwards`` from the last one. What is left out is said on
        stderr; a first row that is too long by itself is cut, and carries what the daemon's own previews carry.
        """
        rows = response.get(name, [])
        if self._max_chars is None:
            return rows
        kept: list[dict] = []
        left = self._max_chars
        for row in rows[::-1] if backwards else rows:
            said = row.get(text) or ""
            if len(said) > left:
                if not kept:
                    kept.append(
                        {
                            **row,
                            text: said[:left],
                            f"{text}_truncated": True,
                            f"{text}_len": row.get(f"{text}_len", len(said)),
                        }
                    )
                break
            kept.append(row)
            left -= len(said)
        if len(kept) < len(rows):
            out.note(f"--max-chars left {len(rows) - len(kept)} of {len(rows)} rows out")
            if "count" in response:
                response["count"] = len(kept)
        response[name] = kept[::-1] if backwards else kept
        return response[name]

    def chosen_json(self, name: str, rows: "Sequence[dict]", cell: "Cell") -> dict:
        """Return `{name: rows}` with the fields alone that --json=NAME,… chose, their values null where a row has none;
        nothing where nobody chose.
        """
        if self._json_names is None:
            return {}
        return {name: [{field: _value(row, field, cell) for field in self._json_names} for row in rows]}

    def print(
        self,
        out: "Output",
        rows: "Sequence[dict]",
        cell: "Cell",
        shown: "Sequence[str]",
        drawn: "Sequence[str] | None" = None,
        whole: bool = False,
    ) -> None:
        """Print rows, of which ``cell(row, name)`` gives one field as text: by the template, in the chosen columns,
        else in those ``shown``.

        ``drawn`` are the columns of a table on a terminal, where they are others. An empty field is `-` between tabs
        and nothing in a template; without -0 every field stays on its line.
        """
        end = "\0" if self.null else "\n"
        if self._pieces is not None:
            for row in rows:
                out.write("".join(_filled(self._pieces, self._on_one_line, row, cell)) + end)
        elif out.draws and not self.null:
            from . import render

            names = self.names or drawn or shown
            render.table(out, names, [[cell(row, name) for name in names] for row in rows], whole=whole)
        else:
            for row in rows:
                out.record([cell(row, name) for name in self.names or shown], end)

    def _on_one_line(self, text: str) -> str:
        return text if self.null else one_line(text)


def _value(row: dict, name: str, cell: "Cell") -> object:
    """Return one field of a row as a value of JSON, null for what the row does not have."""
    for held in (row, row.get("match_reason") or {}):
        # The contract's lists name the caller's key msg_id, and a number of their own id.
        if name in held and not (name == "id" and "msg_id" in held) and name not in _VALUES:
            return held[name]
    text = cell(row, name)
    return None if text == "" else _VALUES.get(name, str)(text)


def _filled(
    pieces: list[tuple[str, str | None]], fitted: "Callable[[str], str]", row: dict, cell: "Cell"
) -> "Iterator[str]":
    """Yield a template's texts with the row's fields between them, each as ``fitted`` makes it."""
    for literal, name in pieces:
        yield literal
        if name is not None:
            yield fitted(cell(row, name))
