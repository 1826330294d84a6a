"""The rules of the house, run as tests: linters, types, who imports whom, lengths, what importing costs."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import edgekit

ROOT = Path(__file__).parents[1]
INSTALLED = Path(edgekit.__file__).parent
LONGEST_FILE, LONGEST_TEST_FILE, LONGEST_FUNCTION, MOST_POSITIONAL = 600, 800, 60, 6
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}
DEVICE_SIDE = ("cli", "package", "target", "engines", "runtime", "vision", "bench")


# Neither mypy nor import-linter follows the import hooks of an editable installation.
EDITABLE = pytest.mark.skipif(INSTALLED.is_relative_to(ROOT / "edgekit"), reason="editable: needs the installed wheel")


def run(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True)


def tool(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def tracked(*suffixes: str) -> list[Path]:
    listed = run("git", "ls-files", "-z")
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name.endswith(suffixes)]
    assert paths
    return [path for path in paths if path.exists()]


def test_ruff_check():
    checked = run(tool("ruff"), "check", "--no-cache", ".")
    assert checked.returncode == 0, checked.stdout


def test_ruff_format():
    checked = run(tool("ruff"), "format", "--no-cache", "--check", ".")
    assert checked.returncode == 0, checked.stdout


def test_clang_format():
    files = [str(path) for path in tracked(".cc", ".h", ".cpp")]
    version = run(tool("clang-format"), "--version").stdout
    if "version 18." not in version:
        pytest.skip(f"clang-format 18 is needed, this is {version.strip()}")
    checked = run(tool("clang-format"), "--dry-run", "--Werror", *files)
    assert checked.returncode == 0, checked.stderr[-4000:]


@EDITABLE
def test_mypy_strict_on_the_installed_wheel(tmp_path):
    config = ROOT / "pyproject.toml"
    checked = run(tool("mypy"), "--config-file", str(config), "--cache-dir", str(tmp_path / "cache"), cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout[-4000:]


@EDITABLE
def test_who_imports_whom():
    # Not in the checkout, which would shadow the wheel.
    checked = run(tool("lint-imports"), "--no-cache", "--config", str(ROOT / "pyproject.toml"), cwd=INSTALLED.parent)
    assert checked.returncode == 0, checked.stdout[-4000:]


def test_files_and_functions_are_short():
    too_long = []
    for path in tracked(".py", ".cc", ".h", ".cpp", ".inc"):
        text = path.read_text()
        limit = LONGEST_TEST_FILE if "tests" in path.relative_to(ROOT).parts else LONGEST_FILE
        if text.count("\n") > limit:
            too_long.append(f"{path.relative_to(ROOT)}: {text.count(chr(10))} lines")
        if path.suffix == ".py":
            in_tests = limit == LONGEST_TEST_FILE  # where tables of cases may take many parameters
            problems = _function_problems(ast.parse(text), 20 if in_tests else MOST_POSITIONAL)
            too_long += [f"{path.relative_to(ROOT)}: {problem}" for problem in problems]
    assert too_long == []


def _function_problems(tree: ast.AST, most_positional: int) -> list[str]:
    problems = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node, clean=False) or ""
            length = (node.end_lineno or node.lineno) - node.lineno - documented.count("\n")
            if length > LONGEST_FUNCTION:
                problems.append(f"{node.name} has {length} lines besides its docstring")
            positional = [each for each in node.args.posonlyargs + node.args.args if each.arg not in ("self", "cls")]
            if len(positional) > most_positional:
                problems.append(f"{node.name} has {len(positional)} positional parameters")
    return problems


def test_names_say_what_is_inside():
    bad = [path for path in tracked(".py", ".cc", ".h") if FORBIDDEN_NAMES & {*path.parts, path.stem}]
    assert bad == []


def test_devices_folder_is_data_only():
    assert {path.suffix for path in (ROOT / "devices").iterdir()} == {".toml"}


def test_nothing_unfinished_and_no_path_of_this_machine():
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
    found = []
    for path in tracked(".py", ".cc", ".h", ".inc", ".toml", ".md"):
        text = path.read_text()
        if path != Path(__file__):
            found += [f"{path.relative_to(ROOT)}: {mark}" for mark in marks.findall(text)]
        if str(ROOT) in text and len(ROOT.parts) > 2:
            found.append(f"{path.relative_to(ROOT)}: {ROOT}")
    assert found == []


def _modules_after(statement: str) -> set[str]:
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    ran = run(sys.executable, "-c", code, cwd=Path(sys.prefix))
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout.splitlines()[-1]))


HEAVY = {"onnx", "onnx_ir", "onnxruntime", "openvino", "torch", "PIL", "cv2", "av", "scipy", "edgekit.converters"}


def test_import_costs_next_to_nothing():
    """The 100 ms of the design in a form that no busy machine can break: nothing heavy, not even numpy."""
    before = _modules_after("pass")
    added = _modules_after("import edgekit") - before
    assert not added & (HEAVY | {"numpy", "msgspec", "rich", "cyclopts"})
    assert len(added) < 60, sorted(added)


def test_lazy_names_are_those_that_are_exported():
    assert set(edgekit.__all__) <= set(dir(edgekit))
    for name in edgekit.__all__:
        assert getattr(edgekit, name) is not None
    with pytest.raises(AttributeError):
        _ = edgekit.no_such_name


def test_the_device_side_imports_nothing_heavy_until_it_is_used():
    statement = "import edgekit.runtime.load, edgekit.runtime.model, edgekit.target.measure, edgekit.cli.main"
    added = _modules_after(statement)
    assert not added & HEAVY


def test_every_module_of_the_device_side_imports_without_the_extras():
    """Extras are blocked: importing a module must not need them, only using it."""
    names = [
        ".".join(["edgekit", *path.relative_to(INSTALLED).with_suffix("").parts])
        for folder in DEVICE_SIDE
        for path in sorted((INSTALLED / folder).rglob("*.py"))
        if path.name not in ("__init__.py", "__main__.py")
    ]
    assert len(names) > 20
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in sorted(HEAVY - {"edgekit.converters"}))
    failed = []
    code = f"""
import importlib, sys
{blocked}
for name in {names!r}:
    try:
        importlib.import_module(name)
    except Exception as error:
        print(name, type(error).__name__, error)
"""
    ran = run(sys.executable, "-c", code, cwd=Path(sys.prefix))
    failed += ran.stdout.splitlines() + ran.stderr.splitlines()
    assert failed == []
