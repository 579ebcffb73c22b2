import sys
from pathlib import Path

import pytest

FIT = ("fit", "log_light ~ log_te", "stars.csv", "--eps-bar", "0.2")


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["nothing"], "invalid choice: 'nothing'"),
        (["fit"], "arguments are required: FORMULA, DATA; see rrmstats fit --help"),
        ([*FIT, "--bogus"], "unrecognized arguments: --bogus; see rrmstats --help"),
        (["fit", "y", "~", "x", "a.csv", "--eps-bar", "0"], "x a.csv (a formula needs quotes)"),
        ([*FIT[:-1], "1"], "argument --eps-bar: must be in [0, 1) or auto, got '1'"),
        ([*FIT[:-1], "nan"], "must be in [0, 1) or auto, got 'nan'"),
        ([*FIT[:-1], "some"], "must be in [0, 1) or auto, got 'some'"),
        ([*FIT, "--model", "lm"], "argument --model: invalid choice: 'lm'"),
        ([*FIT, "--format", "pdf"], "argument --format: invalid choice: 'pdf'"),
        ([*FIT, "--n-components", "0"], "must be a whole number, 1 or more, or a share in (0, 1)"),
        ([*FIT, "--family", "poisson"], "--family is for --model glm, not ols"),
        ([*FIT, "--exposure", "log_te"], "--exposure is for --model glm, poisson and negative"),
        ([*FIT, "--cov-type", "HAC"], "--cov-type HAC and --maxlags go together; give both or"),
        ([*FIT, "--cluster", "log_te"], "--cov-type cluster and --cluster go together"),
        ([*FIT, "--cov-type", "cluster", "--cluster", "te"], "there is no column 'te'"),
        ([*FIT, "--groups", "log_t"], "there is no column 'log_t'; did you mean 'log_te'?"),
        ([*FIT, "--weights", "out.doc"], "out.doc does not say what it is: use one of .csv"),
        (
            [*FIT, "--out", "a.csv", "--report", "a.html", "--weights", "./a.csv"],
            "--out and --weights must be different files",
        ),
        ([*FIT, "--out", "-"], "--out needs the name of a file, got -"),
        (
            [*FIT, "--model", "glm", "--exposure", "log_te"],
            "--exposure needs the log link; add --link log",
        ),
        (
            ["fit", "log_te + log_light ~ 1", *FIT[2:]],
            "the response of --model ols is one column, got log_te, log_light; write I(a + b)",
        ),
        ([*FIT, "--weights", "stars.csv", "--force"], "stars.csv has the data"),
        (["fit", "y ~ x", "stars.txt", "--eps-bar", "0"], "stars.txt does not say what it is"),
        ([*FIT, "--report", "a.pdf"], "--report writes HTML: give a name that ends in .html"),
        (["path", *FIT[1:3], "--report", "a.pdf"], "--report writes HTML"),
        ([*FIT, "--sep", "ab"], "argument --sep: must be one character such as ';', got 'ab'"),
        (
            [*FIT, "--sep", ";", "--input-format", "excel"],
            "--sep and --decimal are for csv and tsv, not excel",
        ),
        (
            [*FIT, "--model", "glm", "--link", "cloglog"],
            "--family gaussian does not take --link cloglog; choose from identity, log, inverse",
        ),
        (["path", *FIT[1:3], "--plot", "a.gif"], "--plot writes png, pdf, svg"),
        (["datasets", "star_cyg"], "there is no data set 'star_cyg'; did you mean 'stars_cyg'?"),
        (["replicate", "9z"], "there is no experiment '9z'; choose from figure1a, "),
    ],
)
def test_wrong_usage(argv, line, stars, refused):
    assert line in refused(*argv, status=2)


@pytest.mark.parametrize(
    ("formula", "line"),
    [
        ("log_light ~ log_t", "there is no column 'log_t'; did you mean 'log_te'?"),
        ("log_light ~ LOG_TE", "there is no column 'LOG_TE'; did you mean 'log_te'?"),
        ("log_light ~ np.log(logte)", "there is no column 'logte'; did you mean 'log_te'?"),
        ("log_light ~ age", "no column 'age'; the columns are log_te, log_light, a.b, tree"),
        ("log_light ~ max", "there is no column 'max'"),
        ('log_light ~ Q("a.c")', "there is no column 'a.c'; did you mean 'a.b'?"),
        ("log_light ~ a.b", "the column name 'a.b' is not a name in Python; write Q(\"a.b\")"),
        ("log_light ~ tree height (m)", 'is not a name in Python; write Q("tree height (m)")'),
        ("log_light ~ foo(log_te)", "there is no function 'foo'; did you mean 'floor'?"),
        ("log_light ~ (log_te", "cannot parse the formula 'log_light ~ (log_te': Unmatched '('"),
        ("log_light ~ log_te +", "cannot parse the formula 'log_light ~ log_te +': expected a"),
        ("log_light ~ log_te log_te", "cannot parse 'log_te log_te' in the formula"),
        ("log_light ~ 'log_te", "cannot parse the formula"),
        ("log_light ~ ~ log_te", "cannot parse the formula"),
        ("log_light ~ 2", "cannot parse the formula"),
        ("", "the formula is empty"),
        ("log_light ~ log_te\0", "NUL"),
        ("log_light", "the formula 'log_light' has no response"),
        ("~ log_te", "the formula '~ log_te' has no response"),
        ("log_light ~ " + " + ".join(["log_te"] * 9000), "is too long or nested too deep"),
        ("log_light ~ I(" + "-" * 50_000 + "log_te)", "in the formula is nested too deep"),
        ("log_light ~ 0", "the formula 'log_light ~ 0' has no predictors"),
        (
            "log_light ~ Intercept",
            "has the name of the constant; write I(Intercept), or",
        ),
        ("log_light ~ [i for i in log_te]", "there is no column 'i'"),
    ],
    ids=lambda text: text[:30],
)
def test_formulas_that_are_wrong(formula, line, stars, refused):
    more = {"a.b": 1.0, "tree height (m)": 1.0, "Intercept": 1.0}
    stars.assign(**more).to_csv("stars.csv", index=False)
    assert line in refused("fit", formula, "stars.csv", "--eps-bar", "0.2", status=2)


def test_a_formula_that_ends_python_is_an_error(stars, refused):
    found = refused("fit", "log_light ~ exit()", "stars.csv", "--eps-bar", "0.2", status=1)
    assert found == "cannot evaluate 'log_light ~ exit()': it ends Python"


def test_components_of_too_few_variables(stars, refused):
    options = ("stars.csv", "--eps-bar", "0.2", "--model", "pca", "--n-components", "5")
    assert "need two or more variables" in refused("fit", "~ log_te", *options, status=1)
    found = refused("fit", "~ log_te + log_light", *options, status=1)
    assert found.startswith("n_components must be a whole number from 1 to 1, fewer than the 2")


def test_models_of_several_variables_take_no_response(stars, refused):
    for model in ("pca", "cov"):
        found = refused(*FIT, "--model", model, status=2)
        assert "has a response, which pca and cov do not take" in found


def test_one_sided_formulas_that_are_wrong(stars, refused):
    options = ("stars.csv", "--eps-bar", "0.2", "--model", "cov")
    assert "has no ~; write '~ a + b'" in refused("fit", "log_te", *options, status=2)
    assert "has no variables; write '~ a + b'" in refused("fit", "~ 1", *options, status=2)


def test_a_column_called_like_the_constant_can_be_used(stars, run):
    stars.assign(Intercept=range(len(stars))).to_csv("stars.csv", index=False)
    for formula in ("log_light ~ I(Intercept)", "log_light ~ Intercept - 1"):
        assert run("fit", formula, "stars.csv", "--eps-bar", "0").status == 0


def test_functions_that_leave_no_rows(stars, run):
    done = run("fit", "log_light ~ log(log_te - 100)", "stars.csv", "--eps-bar", "0.2")
    assert done.status == 1
    assert done.err.splitlines()[-1] == (
        "rrmstats: error: exog is empty: no rows, or none without missing values"
    )


def test_errors_without_a_message_have_their_name(stars, refused, monkeypatch):
    def full(*args):
        raise MemoryError

    monkeypatch.setattr("rrmstats.cli.commands.make_model", full)
    assert refused(*FIT, status=1) == "MemoryError"


def test_standard_input_that_is_closed(refused, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    found = refused("fit", "y ~ x", "-", "--eps-bar", "0", status=1)
    assert found == "standard input is closed; give a file"


def test_empty_rows_above_the_header_of_a_sheet(stars, refused):
    stars.to_excel("stars.xlsx", index=False, startrow=2)
    found = refused(*FIT[:2], "stars.xlsx", *FIT[3:], status=1)
    assert found == "the first row of stars.xlsx is empty; it must name the columns"


def test_text_that_excel_cannot_hold(stars, refused):
    stars.assign(note="\x01").to_csv("stars.csv", index=False)
    found = refused(*FIT, "--weights", "rows.xlsx", status=1)
    assert found.startswith("cannot write the table as excel: \\x01 cannot be used")


def test_levels_and_exposures_that_are_wrong(rows, refused):
    options = ("rows.csv", "--eps-bar", "0.1", "--model")
    found = refused("fit", "label ~ y", *options, "logit", "--level", "3", status=1)
    assert found == "level=3.0 is not among the levels of endog: [1.0, 0.0]"
    found = refused("fit", "label + firm ~ y", *options, "logit", status=2)
    assert found.endswith("for counts of successes and failures use --model glm --family binomial")
    found = refused("fit", "count ~ y", *options, "poisson", "--exposure", "word", status=1)
    assert found.startswith("the exposure 'word' must be numeric, but has values such as")


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("missing.csv", None, "there is no file missing.csv"),
        ("empty.csv", b"", "empty.csv is empty"),
        ("header.csv", b"log_te,log_light\n", "header.csv has no rows of data"),
        ("blank.csv", b" \n\n", "blank.csv is empty"),
        ("latin.csv", "log_te,log_light\n1,\xe9\n".encode("latin-1"), "line 2 is not UTF-8 text"),
        ("ragged.csv", b"log_te,log_light\n1,2\n1,2,3,4\n", "cannot read ragged.csv as csv"),
        ("long.csv", b"log_te,log_light\n1,2,3\n4,5,6\n", "more values than its header has names"),
        ("bad.parquet", b"no parquet", "cannot read bad.parquet as parquet"),
        ("bad.xlsx", b"no workbook", "cannot read bad.xlsx as excel"),
        ("gaps.csv", b"log_te,log_light\n1,\n,2\n", "no rows are left: each of the 2 rows"),
        ("few.csv", b"log_te,log_light\n1,2\n2,3\n", "observations for 2 parameters"),
        ("words.csv", b"log_te,log_light\n1,a\n2,b\n3,c\n4,d\n", "'log_light' must be numeric"),
        ("two.csv", b"log_te,log_light\n1,a\n2,b\n3,a\n", "use --model logit --level a"),
        ("twice.csv", b"log_te,log_light,log_te\n1,2,3\n", "columns of the same name: log_te"),
        ("binary.csv", b"PK\x03\0\0\n\0", "it is not a text file in UTF-8; save it as one"),
        (
            "semi.csv",
            b"log_te;log_light\n1,5;2\n2,5;3\n",
            "by semicolons; give --sep ';'",
        ),
        ("semi2.csv", b"log_te;log_light;a,b\n1;2;3,4,5\n", "semicolons; give --sep ';'"),
        (
            "inf.csv",
            b"log_te,log_light\n1,2\ninf,3\n2,2\n3,4\n5,6\n",
            "exog contains NaN or infinite values; drop these rows",
        ),
        (".", None, "cannot read .: Is a directory"),
    ],
)
def test_data_that_cannot_be_fitted(name, content, line, folder, refused):
    if content is not None:
        (folder / name).write_bytes(content)
    argv = ["fit", FIT[1], name, "--eps-bar", "0.6", "--out", "summary.txt"]
    if name == ".":
        argv += ["--input-format", "csv"]
    assert line in refused(*argv, status=1)


def test_control_characters_do_not_reach_the_terminal(folder, refused):
    (folder / "data.csv").write_bytes(b"\x1b[31mred,y\n1,2\n")
    found = refused("fit", "y ~ x", "data.csv", "--eps-bar", "0", status=2)
    assert found == "there is no column 'x'; the columns are \\x1b[31mred, y"


@pytest.mark.parametrize("option", ["--out", "--weights"])
def test_an_output_that_exists_is_kept_without_force(option, stars, folder, refused, run):
    (folder / "old.csv").write_text("mine")
    found = refused(*FIT, option, "old.csv", status=2)
    assert found == f"old.csv exists; give another name to {option}, or --force"
    refused(*FIT, "--report", "old.csv", status=2)
    assert (folder / "old.csv").read_text() == "mine"
    assert run(*FIT, option, "old.csv", "--force").status == 0
    assert (folder / "old.csv").read_text() != "mine"


def test_outputs_in_places_that_take_no_file(stars, folder, refused):
    (folder / "taken").mkdir()
    for place, line in (
        ("none/a.csv", "the directory none does not"),
        ("taken", "is a dir"),
    ):
        assert line in refused(*FIT, "--out", place, status=1)
    assert "not a regular file" in refused(*FIT, "--out", "/dev/null", "--force", status=1)


def test_outputs_are_checked_before_any_work(stars, refused, monkeypatch):
    def no_work(*args, **kwargs):
        raise AssertionError("work was begun")

    def read_only(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("rrmstats.cli.commands.read_source", no_work)
    refused(*FIT, "--weights", "none/out.csv", status=1)
    monkeypatch.setattr("rrmstats.cli.commands.tempfile.TemporaryFile", read_only)
    assert refused(*FIT, "--out", "a.txt", status=1) == "cannot write to .: Permission denied"


def test_where_one_output_fails_none_is_left(stars, folder, refused, monkeypatch):
    replace, done = Path.replace, []

    def full(self, target):
        done.append(target)
        if len(done) == 2:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    found = refused(*FIT, "--weights", "a.csv", "--out", "b.txt", status=1)
    assert found == "cannot write b.txt: No space left on device"
    assert [path.name for path in folder.iterdir()] == ["stars.csv"]


@pytest.mark.parametrize(
    ("module", "argv", "extra"),
    [
        ("pyarrow", [*FIT, "--weights", "out.parquet"], "cli"),
        ("openpyxl", ["fit", FIT[1], "stars.xlsx", "--eps-bar", "0.2"], "cli"),
        ("plotly", ["path", *FIT[1:3], "--report", "path.html"], "interactive"),
        ("matplotlib", ["path", *FIT[1:3], "--plot", "path.png"], "plot"),
    ],
)
def test_packages_that_are_not_installed(module, argv, extra, stars, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    found = refused(*argv, status=1)
    assert found == f"{module} is not installed; install it with: pip install 'rrmstats[{extra}]'"


def test_ctrl_c_is_quiet(stars, run, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("rrmstats.cli.commands.make_model", interrupted)
    done = run(*FIT)
    assert (done.status, done.out, done.err) == (130, "", "")


def test_warnings_are_single_lines_and_come_once(rows, run):
    done = run("fit", "y ~ np.log(x)", "rows.csv", "--eps-bar", "0.1", "--out", "out.txt")
    lines = done.err.splitlines()
    assert done.status == 0
    assert "rrmstats: warning: invalid value encountered in log" in lines
    assert all(line.startswith(("rrmstats: warning: ", "rrmstats: note: ")) for line in lines)
    assert len(set(lines)) == len(lines)
