"""What tells a command line from a question: paths, options, programs whose options look like words. Pure functions.

Contract: question.without.
"""

from __future__ import annotations

import re

# Signs that people do not type between words: paths, variables, assignments, pipes, options.
_SHELL = re.compile(r"(?:\.{0,2}|~)/.*|\.{1,2}|--.*|-.+|.*[=|<>$`{}\\;].*|&&?")
# Programs whose options are letters behind one hyphen, several at once.
_OF_LETTERS = frozenset(
    """
    apt awk base64 bash cat chmod chown cp curl cut date dd df dig docker du grep gunzip gzip head iptables journalctl
    kill ln ls lsof make mkdir mount mv nc netstat nmap ps pgrep pkill psql rg rm rsync scp sed set sh sort ss ssh sudo
    tail tar tcpdump tee top touch tr umount uniq unzip wc wget xargs xxd zip zsh""".split()
)
# Programs whose options are words behind one hyphen.
_OF_WORDS = {
    "find": """
        name iname path ipath regex type size mtime atime ctime mmin amin cmin newer empty perm user group delete exec
        execdir print prune maxdepth mindepth depth follow links inum""",
    "go": """
        race run bench benchmem count cover coverprofile short timeout tags ldflags gcflags mod json list parallel cpu
        failfast vet work modfile trimpath""",
    "java javac kotlin scala keytool": """
        jar classpath server client showversion encoding source target release genkey keystore alias storepass import
        list cacerts file""",
    "mvn gradle ant": "pl am amd errors offline file logger",
    "openssl": """
        noout text subject issuer dates enddate startdate fingerprint modulus key cert req days nodes newkey keyout out
        outform inform pubkey pubin pubout sign verify connect servername showcerts passin passout config extensions
        subj nocrypt export""",
    "ffmpeg ffprobe ffplay": """
        codec vcodec acodec preset crf map filter metadata format framerate loop threads show loglevel frames""",
    "terraform tofu packer consul vault nomad": """
        target var destroy out lock input refresh upgrade reconfigure json chdir backend replace parallelism dev format
        field recursive force""",
    "gcc g++ clang cc ld": "pedantic ansi static shared pthread pipe save print rpath lib include wall werror",
    "convert magick mogrify": "resize quality crop rotate density strip flatten format gravity fill append",
}
_OPTIONS = {program: frozenset(words.split()) for programs, words in _OF_WORDS.items() for program in programs.split()}
_OF_ALL = frozenset("version help verbose debug quiet".split())


def is_option(word: str, before: str, first: str, at: int) -> bool:
    """Tell whether a word behind a hyphen, the piece of number ``at``, is an option of the program that a text begins
    with, or of the piece ``before`` it. All in lower case.
    """
    if before in _OF_LETTERS and (at == 1 or first == "sudo"):
        return True
    return word in _OF_ALL or any(word in _OPTIONS.get(program, ()) for program in (first, before))


def is_typed_at_a_prompt(piece: str) -> bool:
    """Tell whether a piece between blanks is what people type to a shell. A lone hyphen is a dash."""
    return _SHELL.fullmatch(piece) is not None
