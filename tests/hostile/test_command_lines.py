"""Bad command lines: one line on standard error, exit code 2, no traceback, nothing written."""

import itertools

import pytest
from builders.packages import small_package

from edgekit.cli.main import COMMANDS, run

FILES = ("missing.ekpkg", "", "folder", "empty.ekpkg", "text.ekpkg", "cut.ekpkg", "\n", "a" * 5000, "nul\0byte")
NUMBERS = ("-1", "nan", "1e9", "two", "", "257", "99999999999999999999")
COMMAND_NAMES = sorted(COMMANDS)


def _unknown_words() -> list[list[str]]:
    words = [[name] for name in ("convrt", "RUN", "", "-x", "--verison", "--", "devices convert", "\0", "run run")]
    for name in COMMAND_NAMES:
        words += [[*name.split(), "-" + letter] for letter in "abc"]
        words += [[*name.split(), "--no-such-option"], [*name.split(), "-Z"], [*name.split(), "--threds=2"]]
        words += [[*name.split(), "a", "b", "c", "d", "e"]]
        words += [
            [*name.split(), odd] for odd in ("---", "--json=maybe", "-\N{SNOWMAN}", "--\x1b[31m", "--engine=", "--=x")
        ]
    words += [["devices", word] for word in ("lst", "show", "measured", "-l", "--jsn", "list extra")]
    return [each for each in words if each != ["--"]]


def _missing_words() -> list[list[str]]:
    return [["run"], ["inspect"], ["convert"], ["bench"], ["tune"], ["devices", "show"], ["run", "good.ekpkg"]]


def _bad_files() -> list[list[str]]:
    heads = (
        ["inspect"],
        ["run"],
        ["bench"],
        ["inspect", "--json"],
        ["inspect", "--layers"],
        ["inspect", "--self-test"],
        ["tune"],
    )
    cases = []
    for head, file in itertools.product(heads, FILES):
        cases.append([*head, file, "x.png"] if head == ["run"] else [*head, file])
    return cases


def _bad_values() -> list[list[str]]:
    cases = [["devices", "measure", "--no-save", "--threads", number] for number in NUMBERS]
    for number in NUMBERS:
        cases.append(["run", "good.ekpkg", "x.npz", "--threads", number])
        cases.append(["bench", "good.ekpkg", "--threads", number])
        cases += [["bench", "good.ekpkg", option, number] for option in ("--repetitions", "--sessions", "--bucket")]
        cases.append(["convert", "text.ekpkg", "-o", "out.ekpkg", "--max-samples", number])
    for command in ("bench", "tune"):
        cases += [[command, "good.ekpkg", "--seconds", number] for number in ("-1", "nan", "two", "", "inf")]
    cases += [["tune", "good.ekpkg", "--threads", number] for number in NUMBERS]
    cases += [["run", "good.ekpkg", "x.npz", "--frames", number] for number in NUMBERS[:5]]
    cases += [["convert", file, "-o", "out.ekpkg"] for file in FILES]
    for engine in ("tensorrt", "", "Native", "native,openvino", "\x1b[31m"):
        cases.append(["run", "good.ekpkg", "x.npz", "--engine", engine])
    for device in (
        "raspbery-pi",
        "..",
        "../../etc/passwd",
        "",
        "THIS-MACHINE",
        "x" * 3000,
        "missing.toml",
        "\0",
        "a b",
    ):
        cases.append(["devices", "show", device])
        cases.append(["devices", "show", device, "--json"])
    return cases


CASES = [*_unknown_words(), *_missing_words(), *_bad_files(), *_bad_values()]
PROFILES = {
    "not TOML": "schema = ",
    "no schema": 'id = "x"',
    "newer schema": "schema = 99",
    "schema as text": 'schema = "1"',
    "wrong type": 'schema = 1\nid = 5\nname = "x"',
    "extends nothing": 'schema = 1\nextends = "no-such"',
    "extends a path": 'schema = 1\nextends = "../x"',
    "extends a number": "schema = 1\nextends = 3",
    "figure without source": 'schema = 1\nid = "x"\nextends = "raspberry-pi-5"\nmemory = { peak_gb_s = { value = 3 } }',
    "negative figure": 'extends = "raspberry-pi-5"\n[memory]\npeak_gb_s = { value = -3, source = "x" }',
    "blank source": 'extends = "raspberry-pi-5"\n[memory]\npeak_gb_s = { value = 3, source = " " }',
    "unknown field": 'extends = "raspberry-pi-5"\ncolour = "green"',
    "malformed id": 'extends = "raspberry-pi-5"\nid = "../x"',
    "activations of another CPU": 'extends = "raspberry-pi-5"\nquant = { activation = "u8" }',
    "deep": "schema = " + "[" * 5000,
    "infinite": 'extends = "raspberry-pi-5"\n[memory]\npeak_gb_s = { value = nan, source = "x" }',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    small_package(path / "good.ekpkg")
    (path / "folder").mkdir()
    (path / "empty.ekpkg").write_bytes(b"")
    (path / "text.ekpkg").write_text("hello\n")
    (path / "cut.ekpkg").write_bytes((path / "good.ekpkg").read_bytes()[:-30])
    return path


@pytest.fixture(autouse=True)
def _in_folder(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("EDGEKIT_DEBUG", raising=False)


def refused(words, capsys) -> str:
    code = run(words)
    printed = capsys.readouterr()
    assert code == 2, (words, printed.err)
    assert printed.err.count("\n") == 1 and printed.err.startswith("edgekit: "), printed.err
    assert printed.err[:-1].isprintable() and "Traceback" not in printed.err
    return printed.err


def test_there_are_enough_of_them():
    assert len(CASES) + len(PROFILES) >= 300


@pytest.mark.parametrize("words", CASES, ids=lambda words: " ".join(words)[:60].encode("unicode_escape").decode())
def test_one_line_and_exit_code_2(words, folder, capsys):
    before = sorted(path.name for path in folder.iterdir())
    refused(words, capsys)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("name", PROFILES)
def test_bad_profiles(name, folder, tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(PROFILES[name])
    assert str(path) in refused(["devices", "show", str(path)], capsys)


def test_unknown_profile_names_the_nearest(capsys):
    assert "raspberry-pi-5" in refused(["devices", "show", "rasberry-pi5"], capsys)


def test_profiles_that_extend_each_other(tmp_path, capsys):
    own = tmp_path / "edgekit" / "devices"
    own.mkdir(parents=True)
    for one, other in (("ping", "pong"), ("pong", "ping")):
        (own / f"{one}.toml").write_text(f'schema = 1\nextends = "{other}"')
    assert "extends itself" in refused(["devices", "show", "ping"], capsys)


def test_errors_show_the_traceback_when_asked(capsys, monkeypatch):
    monkeypatch.setenv("EDGEKIT_DEBUG", "1")
    assert run(["inspect", "missing.ekpkg"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_every_command_has_help_with_an_example(name, capsys):
    assert run([*name.split(), "--help"]) == 0
    printed = capsys.readouterr()
    assert "Example: edgekit " + name in printed.out.replace("\n", " ") and printed.err == ""


def test_version_and_overview(capsys):
    import edgekit

    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == edgekit.__version__
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name.split()[0] in out for name in COMMAND_NAMES)
