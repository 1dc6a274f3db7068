"""The short way to a module of ours leads to where the search would.

Contract: speed.client
"""

from __future__ import annotations

import ast
import importlib.util
import os
import py_compile
import subprocess
import sys
import time
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

import cpersona_cli
import cpersona_daemon
from cpersona_cli.fast.finder import FOLDERS, Finder

ROOTS = (Path(cpersona_cli.__file__).parent, Path(cpersona_daemon.__file__).parent / "shared")
MODULES = sorted(
    ".".join(path.relative_to(root.parents[len(root.parts) - 1 - root.parts.index(top)]).with_suffix("").parts)
    for root, top in zip(ROOTS, ("cpersona_cli", "cpersona_daemon"), strict=True)
    for path in root.rglob("*.py")
    if path.name != "__init__.py" and "script" not in path.parts
)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_the_client_is_found_where_the_search_finds_it(name: str):
    path = importlib.util.find_spec(name.rpartition(".")[0]).submodule_search_locations
    found, searched = Finder.find_spec(name, list(path)), PathFinder.find_spec(name, list(path))
    assert (found.origin, found.cached, found.has_location) == (searched.origin, searched.cached, searched.has_location)
    assert found.loader.path == searched.loader.path


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of ours with one module, compiled by Python itself."""
    (tmp_path / "word.py").write_text("SAID = 1\n")
    py_compile.compile(str(tmp_path / "word.py"), doraise=True)
    return tmp_path


def said(package: Path) -> int:
    spec = Finder.find_spec("cpersona_cli.word", [str(package)])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SAID


def test_a_module_that_changed_since_it_was_compiled_is_read_as_it_is_now(package: Path):
    assert said(package) == 1
    (package / "word.py").write_text("SAID = 22\n")  # another size
    assert said(package) == 22
    (package / "word.py").write_text("SAID = 33\n")  # the same size, a later time
    os.utime(package / "word.py", (time.time() + 5, time.time() + 5))
    assert said(package) == 33


@pytest.mark.parametrize("damage", [b"", b"short", bytes(64)])
def test_a_compiled_form_that_is_none_is_passed_over(package: Path, damage: bytes):
    (compiled,) = (package / "__pycache__").iterdir()
    compiled.write_bytes(damage)
    assert said(package) == 1
    compiled.unlink()
    assert said(package) == 1


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_a_folder_whose_own_file_is_not_read_holds_a_docstring_and_nothing_else(name: str):
    spec = importlib.util.find_spec(name)
    (only,) = ast.parse(Path(spec.origin).read_text("utf-8")).body
    assert isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant)
    parent = importlib.util.find_spec(name.rpartition(".")[0]).submodule_search_locations
    assert Finder.find_spec(name, list(parent)).submodule_search_locations == list(spec.submodule_search_locations)


@pytest.mark.parametrize(
    "name", ["json", "json.decoder", "cpersona_cli", "cpersona_cli.nothing", "cpersona_cli_2.main"]
)
def test_what_is_not_ours_or_not_there_is_left_to_the_search(name: str):
    assert Finder.find_spec(name, [str(ROOTS[0])] if "." in name else None) is None


def test_a_command_run_through_the_script_finds_its_modules_the_short_way(home: dict[str, str]):
    script = Path(cpersona_cli.__file__).parent / "script" / "cpersona"
    code = (
        f"import sys; sys.argv = ['cpersona', '--version']; text = open({str(script)!r}).read()\n"
        "text = text.replace('entry()', 'print(sys.meta_path[0].__name__)').replace('import entry', 'import main')\n"
        "exec(compile(text, 'script', 'exec'))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=home, capture_output=True, text=True, check=True)
    assert done.stdout == "Finder\n"
