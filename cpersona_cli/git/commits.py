"""Commits as memories: what git says of them, and the request that keeps one.

A commit hook runs this, so nothing heavy is imported and git is run without Python's subprocess.

Contract: git.notes, git.paths.
"""

from __future__ import annotations

import os

from cpersona_daemon.shared import commit_notes, files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from cpersona_daemon.shared.settings import Settings

CHANNEL = "git"
MAX_PATHS = 100
STATE = "cpersona.json"  # in the common git directory: what `git install` was told; its presence is what arms the hooks
# in the directory of a running rebase: what was committed meanwhile; gone with it when it is given up
HELD = "cpersona-commits"
MAX_MESSAGE = 15_000  # of a message; what is cut of it is said, and the id at the end never is
_ROOM = 500  # of the metadata's length, for what stands beside the paths
_FIELDS = ("parents", "author", "email", "time", "names", "reached_by", "message")
_FORMAT = "%H%x00%P%x00%an%x00%ae%x00%aI%x00%D%x00%S%x00%B%x00"
_CHUNK = 1 << 16
_LARGEST_STATE = 1 << 20


class GitFailed(Exception):
    """Git could not say what was asked; the message is its own last line."""

    exit_status = 1


class Git:
    """Git in one directory ('' is the current one), in our environment or another."""

    def __init__(self, directory: str = "", environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._before = ("git", "-C", directory) if directory else ("git",)
        self.wait: Callable[[int], None] | None = (
            None  # called with the descriptor of git's output before each read of it
        )

    def line(self, *arguments: str) -> str:
        """Return git's answer without its line end. Raises GitFailed."""
        return os.fsdecode(b"".join(self.output(*arguments))).rstrip("\n")

    def output(self, *arguments: str, input: bytes = b"") -> Iterator[bytes]:
        """Yield what git writes, as it comes.

        ``input`` must be small or read by git before it writes. Raises GitFailed.
        """
        reader, writer = os.pipe()
        complaints = os.memfd_create("git") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
        source, feed = os.pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, source, 0),
            (os.POSIX_SPAWN_DUP2, writer, 1),
            (os.POSIX_SPAWN_DUP2, complaints, 2),
        ]
        try:
            try:
                pid = os.posix_spawnp(
                    "git", [*self._before, *arguments], {**self._environ, "LC_ALL": "C"}, file_actions=actions
                )
            except OSError as error:
                raise GitFailed(f"git cannot be run: {error.strerror}") from None
            finally:
                os.close(writer)
                os.close(source)
            try:
                view = memoryview(input)
                try:
                    while view:
                        view = view[os.write(feed, view) :]
                except BrokenPipeError:
                    pass  # it did not want to know more; its status says why
                os.close(feed)
                feed = -1
                while data := self._read(reader):
                    yield data
            except BaseException:
                from signal import SIGTERM

                os.kill(pid, SIGTERM)  # nobody reads on: it must not walk a long history to its end first
                raise
            finally:
                os.close(reader)
                reader = -1
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if status:
                said = os.pread(complaints, 4096, 0).decode("utf-8", "replace").strip().splitlines() or [
                    f"git ended with {status}"
                ]
                raise GitFailed(said[-1].removeprefix("fatal: "))
        finally:
            for descriptor in (reader, feed, complaints):
                if descriptor >= 0:
                    os.close(descriptor)

    def _read(self, descriptor: int) -> bytes:
        if self.wait is not None:
            self.wait(descriptor)
        return os.read(descriptor, _CHUNK)


class Repository:
    """One repository: its directories, its root commit, its name, and what `git install` was told of it."""

    __slots__ = ("git", "git_dir", "common", "state", "_root")

    def __init__(self, git: Git, git_dir: str, common: str) -> None:
        self.git, self.git_dir, self.common = git, git_dir, common
        self.state = _read_state(common)
        self._root: str | None = None

    @classmethod
    def of_hook(cls) -> Repository:
        """Return the repository whose hook we are: found without asking git where that is possible."""
        found = _git_dir()
        return cls.open() if found is None else cls(Git(), found, _common(found))

    @classmethod
    def open(cls, directory: str = "") -> Repository:
        """Return the repository of a directory. Raises GitFailed where there is none."""
        git = Git(directory)
        try:
            git_dir, common = git.line("rev-parse", "--git-dir", "--git-common-dir").split("\n")
        except GitFailed as error:
            raise GitFailed(f"{error}; run it inside a repository") from None
        here = os.path.join(os.getcwd(), directory)
        return cls(git, os.path.realpath(os.path.join(here, git_dir)), os.path.realpath(os.path.join(here, common)))

    @property
    def name(self) -> str:
        """What people call it: the directory that holds its main work tree, or the bare repository's own."""
        above, last = os.path.split(self.common)
        return os.path.basename(above) if last == ".git" else last.removesuffix(".git")

    def root(self) -> str:
        """Return the id of the oldest root commit, remembered once it is known.

        Raises GitFailed in an empty repository.
        """
        known = self._root or (self.state.get("root") if self.state else None)
        if known:
            return known
        self._root = self.git.line("rev-list", "--max-parents=0", "HEAD").split("\n")[-1]
        if self.state is not None:
            self.state["root"] = self._root
            write_state(self.common, self.state)
        return self._root

    def rebase(self) -> str | None:
        """Return the directory of a rebase that is under way in this work tree, None without one."""
        merge, apply = os.path.join(self.git_dir, "rebase-merge"), os.path.join(self.git_dir, "rebase-apply")
        if os.path.isdir(merge):
            return merge
        return apply if os.path.exists(os.path.join(apply, "rebasing")) else None  # without that file it is `git am`

    def branch(self, rebase: str | None = None) -> str:
        """Return the branch of this work tree, '' for a detached HEAD; during a rebase the one that is rebased."""
        path = os.path.join(rebase, "head-name") if rebase else os.path.join(self.git_dir, "HEAD")
        if rebase and not os.path.exists(path):
            # The apply backend notes the name only when it has to stop; the branch itself moves last of all.
            return self.git.line(
                "for-each-ref", "--points-at=ORIG_HEAD", "--format=%(refname:short)", "refs/heads"
            ).split("\n")[0]
        text = read_line(path).removeprefix("ref: ")
        if text == "refs/heads/.invalid":  # refs are kept in tables, which git alone reads
            try:
                return self.git.line("symbolic-ref", "--short", "--quiet", "HEAD")
            except GitFailed:
                return ""
        return text.removeprefix("refs/heads/") if text.startswith("refs/heads/") else ""

    def listed(self, *revisions: str) -> dict[str, str]:
        """Return the ids of the commits that revisions lead to, oldest first, and by which of them each was reached.

        Raises GitFailed.
        """
        try:
            lines = self.git.line(
                "log", "--reverse", "--no-color", "--no-show-signature", "--format=%H %S", *revisions, "--"
            )
        except GitFailed:
            if "HEAD" in revisions and not self._has_commit():
                raise GitFailed("there is no commit on this branch yet; make one, or name another branch") from None
            raise
        return dict(line.split(" ", 1) for line in lines.split("\n") if line)

    def _has_commit(self) -> bool:
        try:
            return bool(self.git.line("rev-parse", "--verify", "--quiet", "HEAD"))
        except GitFailed:
            return False

    def named(self, ids: Collection[str]) -> Iterator[dict]:
        """Yield the commits with these ids in their order, as ``commits`` does; git is not asked for none."""
        if ids:
            yield from self.commits("--stdin", input="".join(f"{id}\n" for id in ids).encode())

    def commits(self, *arguments: str, input: bytes = b"") -> Iterator[dict]:
        """Yield single commits as maps (``_FIELDS``, `commit`, `paths`, `paths_total`). Raises GitFailed.

        A merge shows what it changed against its first parent.
        """
        mark = os.urandom(8).hex()  # no text of a commit can hold it, so what begins with it is a commit
        output = self.git.output(
            "log",
            "-z",
            "--name-only",
            "--no-renames",
            "--no-color",
            "--no-show-signature",
            "--encoding=UTF-8",
            "--no-ext-diff",
            "-m",
            "--first-parent",
            "--no-walk=unsorted",
            f"--format={mark}{_FORMAT}",
            *arguments,
            input=input,
        )
        return _parsed(output, mark)


def _parsed(chunks: Iterable[bytes], mark: str) -> Iterator[dict]:
    commit: dict | None = None
    fields, start = 0, mark.encode()
    for token in _tokens(chunks):
        if token.startswith(start):
            if commit is not None:
                yield commit
            commit, fields = {"commit": token[len(start) :].decode(), "paths": [], "paths_total": 0}, 0
        elif commit is None:
            continue  # nothing stands before the first commit
        elif fields < len(_FIELDS):
            commit[_FIELDS[fields]] = token.decode("utf-8", "replace")
            fields += 1
        elif token.strip(b"\n"):
            commit["paths_total"] += 1
            if len(commit["paths"]) < MAX_PATHS:
                commit["paths"].append(token.removeprefix(b"\n").decode("utf-8", "backslashreplace"))
    if commit is not None:
        yield commit


def _tokens(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for data in chunks:
        *whole, rest = (rest + data).split(b"\0")
        yield from whole
    if rest:
        yield rest


def store_params(commit: dict, repository: Repository, settings: Settings, branch: str) -> dict:
    """Return store's parameters for one commit."""
    root, name, id = repository.root(), repository.name, commit["commit"]
    author = f"{commit['author']} <{commit['email']}>"
    metadata = {
        "commit": id,
        "root": root,
        "parents": commit["parents"].split(),
        "paths_total": commit["paths_total"],
        "paths": [],
    }
    room = settings.max_metadata_length - _ROOM - len(root) * (4 + len(metadata["parents"]))
    for path in commit["paths"]:
        room -= len(path) * (2 if '"' in path or "\\" in path else 1) + 4
        if room < 0:
            break
        metadata["paths"].append(path)
    files = commit_notes.files_line(commit["paths"], commit["paths_total"], settings.max_content_length)
    whole, end = commit["message"].strip(), f"{files}{commit_notes.COMMIT}{id}"
    message = whole[: max(0, min(MAX_MESSAGE, settings.max_content_length - len(end)))]
    if len(message) < len(whole):
        metadata["message_length"] = len(whole)
    params = axes(settings)
    params.update(
        id=message_id(root, id),
        content=f"{message}{end}".lstrip(),
        timestamp=commit["time"],
        metadata=metadata,
        source={
            "type": "Git",
            "id": f"{name}@{branch}",
            "name": commit["author"],
            "repository": name,
            "branch": branch,
            "author": author,
            "time": commit["time"],
        },
    )
    return params


def branch_of(repository: Repository, commit: dict) -> str:
    """Return the branch by which a commit was reached; HEAD is the branch that it stands on."""
    reached = commit["reached_by"].removeprefix("refs/heads/")
    return repository.branch() if reached in ("", "HEAD") or reached == commit["commit"] else reached


def cut_of(params: dict) -> dict[str, int] | None:
    """Return how much of a commit's message a note keeps, `{kept, of}` in characters; None for all of it."""
    whole = params["metadata"].get("message_length")
    return None if whole is None else {"kept": len(commit_notes.parts(params["content"])[0]), "of": whole}


def axes(settings: Settings) -> dict:
    """Return the parameters of notes that are stored: whose memory they are, and the channel."""
    return {**owner(settings), "channel": CHANNEL}


def owner(settings: Settings) -> dict:
    """Return the parameters that say whose memory the notes are."""
    return {"agent_id": settings.agent} | ({} if settings.project is None else {"project_id": settings.project})


def message_id(root: str, commit: str) -> str:
    """Return the key of a commit's note."""
    return f"git:{root}:{commit}"


def read_line(path: str) -> str:
    """Return the first line of a small file, '' where there is none."""
    try:
        with open(path, "rb") as handle:
            return os.fsdecode(handle.readline(4096)).rstrip("\n")
    except OSError:
        return ""


def write_state(common: str, state: dict) -> None:
    """Write what the hooks of a repository need to know; whole or not at all."""
    from ..terminal.output import to_json

    files.replace(os.path.join(common, STATE), f"{to_json(state)}\n".encode())


def _read_state(common: str) -> dict | None:
    from ..terminal.reading import parse_json

    try:
        state = parse_json(files.read(os.path.join(common, STATE), _LARGEST_STATE).decode("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _git_dir() -> str | None:
    """Return the git directory that the environment or the nearest `.git` names, None where only git can tell."""
    named = os.environ.get("GIT_DIR")
    if named:
        return os.path.realpath(named)
    directory = os.getcwd()
    while True:
        path = os.path.join(directory, ".git")
        if os.path.isdir(path):
            return os.path.realpath(path)
        if os.path.isfile(path):
            target = read_line(path).removeprefix("gitdir: ")
            return os.path.realpath(os.path.join(directory, target))
        above = os.path.dirname(directory)
        if above == directory:
            return None
        directory = above


def _common(git_dir: str) -> str:
    shared = read_line(os.path.join(git_dir, "commondir"))
    return os.path.realpath(os.path.join(git_dir, shared)) if shared else git_dir
