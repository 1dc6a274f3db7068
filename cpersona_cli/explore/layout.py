"""How the screen is laid out, which keys its last line names, and its help.

Contract: explore.keys, explore.order.
"""

# key, what it does, and the same where there is little room
KEYS_OF_QUESTION = (
    ("type", "ask", "ask"),
    ("↑↓", "row", "row"),
    ("enter", "to the rows and their keys", "to the rows' keys"),
    ("^t", "filter", "filter"),
    ("^c", "quit", "quit"),
    ("f1", "help", "help"),
)
KEYS_OF_ROWS = (
    ("/", "ask", "ask"),
    ("w", "why not", "why"),
    ("m p", "another mode, precision beside", "beside"),
    ("f", "filter", "only"),
    ("o", "open", "open"),
    ("y", "copy", "copy"),
    ("e", "edit", "edit"),
    ("l", "lock", "lock"),
    ("d", "delete", "del"),
    ("a", "canary", "canary"),
    ("?", "help", "help"),
)

HELP = """\
Every keystroke in the question asks anew. The best row is the first one here,
nearest the question; `cpersona recall` prints it last, nearest the prompt.
Nothing that is asked here counts as a recall.

In the question
  up, down, page up/down   move among the rows while you type
  enter, tab               to the rows and their keys
  ctrl-u                   an empty line: the newest rows
  ctrl-t, f1               filters, this page
  ctrl-c, ctrl-z           quit, into the background (fg comes back)

Among the rows
  / or escape   back to the question
  space, b      the text of the row, a page on and back
  o or enter    open the text in $PAGER
  y, Y          copy the ref, the text; the terminal must allow it (OSC 52)
  e             edit the text in $VISUAL or $EDITOR; it becomes the row's text
  l             lock the memory, or unlock it
  d             delete the row; it asks first
  a             save question and row as a canary
  w             show what came near and was not returned, and say why
  m             the same under the next mode, side by side; then alone again
  p             the same under the next precision
  left, right   to the list beside, and back
  f             filters: agent, project, channel, time
  q, ?          quit, this page

The bars
  The first is what the gate compared; the line across it is what the gate
  asked. The others are what it adds up from: similarity, words and what
  neighbours lend in a blend, what each list gave in other modes. A penalty is
  what age or an episode took. All rows of an answer have one scale.

In a text the question's words are underlined; where a passage was the best of
a long text, the rest of it is dim."""

CSS = """
Screen, .over, .asks { background: ansi_default; color: ansi_default; }
#where { height: 1; text-style: bold; }
#line { height: 1; }
#prompt { width: 2; }
#question { width: 1fr; }
#body { height: 1fr; layout: vertical; }
Rows, VerticalScroll {
    scrollbar-size-vertical: 1; scrollbar-color: ansi_bright_black; scrollbar-color-active: ansi_bright_black;
    scrollbar-background: ansi_default; scrollbar-background-active: ansi_default;
}
#lists { height: 1fr; min-height: 4; }
#lists > Vertical { width: 1fr; }
#beside { display: none; border-left: solid ansi_bright_black; }
.two #beside { display: block; }
.heading { height: 1; text-wrap: nowrap; text-overflow: ellipsis; color: ansi_cyan; }
Rows { height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; background: ansi_default; color: ansi_default; }
Rows > .option-list--option-highlighted, Rows:focus > .option-list--option-highlighted {
    background: ansi_default; color: ansi_default; text-style: none;
}
Whole { height: 1.2fr; border-top: solid ansi_bright_black; }
#why { height: auto; max-height: 5; color: ansi_yellow; }
#facts { height: auto; max-height: 12; text-wrap: nowrap; text-overflow: ellipsis; }
#reading { height: 1fr; margin-top: 1; }
#text { height: auto; }
.wide #body { layout: horizontal; }
.wide #lists { width: 1fr; height: 1fr; }
.wide Whole { width: 1fr; height: 1fr; border-top: none; border-left: solid ansi_bright_black; padding-left: 1; }
#said { height: auto; max-height: 3; color: ansi_yellow; }
#keys, .keys { height: 1; }
.title { text-style: bold; margin-bottom: 1; }
Help, Sure, Form { align: center middle; }
Sure, Form { background: transparent; }
.over { width: 100%; height: 1fr; padding: 0 1; }
.asks { width: 76; max-width: 100%; height: auto; max-height: 100%; border: round ansi_cyan; padding: 0 1; }
#sure { height: auto; max-height: 8; margin-bottom: 1; }
.field { height: 1; }
.field > Static { width: 9; }
.field > Input { width: 1fr; }
#wrong { height: auto; min-height: 1; color: ansi_red; }
Input > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
"""
