"""The names of the months, in the languages in which a date is read with its day beside it.

Contract: dates.spelled.
"""

from __future__ import annotations

from ..shared.periods import MONTHS

ABBREVIATED = "jan feb mar apr may jun jul aug sep oct nov dec".split()

_LANGUAGES = (
    " ".join(MONTHS),
    " ".join(ABBREVIATED),
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
)

# For each month what it is called elsewhere, as it is written behind a day.
ELSEWHERE = [
    tuple(dict.fromkeys((german, french, f"de {spanish}", italian)))
    for german, french, spanish, italian in zip(*(names.split() for names in _LANGUAGES[2:]), strict=True)
]

# A name in lower case -> its number.
NUMBERS = {name: number for names in _LANGUAGES for number, name in enumerate(names.split(), 1)} | {
    "sept": 9, "maerz": 3, "fevrier": 2, "aout": 8, "decembre": 12,
}  # fmt: skip
