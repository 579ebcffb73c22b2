import io
import json
import sys
from decimal import Decimal
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula
import statsmodels.formula.api as smf
from undated import undated

import rrmstats
from rrmstats.cli import main

FIT = ("fit", "log_light ~ log_te", "stars.csv", "--eps-bar", "0.2")


def record(done):
    """Return the JSON that a command printed, which has no names besides JSON's own."""

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(done.out, parse_constant=refuse)


def negative_binomial(data, groups=None, exposure="time"):
    exposed = {} if exposure is None else {"exposure": data[exposure]}
    counts = smf.negativebinomial("count ~ x", data, **exposed)
    return rrmstats.robustify(counts, 0.1, groups=groups)


def test_text_is_the_summary_in_python(stars, run):
    done = run(*FIT)
    fit = rrmstats.ols(FIT[1], stars, eps_bar=0.2).fit()
    assert undated(done.out) == undated(fit.summary()) + "\n"
    assert done.err == ""


def test_json_holds_the_numbers(rows, run):
    found = record(run("fit", "y ~ x + group", "rows.csv", "--eps-bar", "0.1", "--format", "json"))
    fit = rrmstats.ols("y ~ x + group", rows, eps_bar=0.1).fit()
    assert (found["model"], found["formula"], found["eps_bar"]) == ("ols", "y ~ x + group", 0.1)
    assert (found["nobs"], found["n_dropped"]) == (58, 2)
    for key in ("params", "bse", "pvalues"):
        assert found[key] == pytest.approx(getattr(fit, key).to_dict(), rel=1e-8)
    assert found["conf_int"]["x"] == pytest.approx(fit.conf_int().loc["x"].tolist(), rel=1e-8)
    for key in ("scale", "risk", "eps_hat", "eps_hat_se", "n_eff", "n_kish"):
        assert found[key] == pytest.approx(getattr(fit, key), rel=1e-8)
    assert found["lambda"] == pytest.approx(fit.lambda_, rel=1e-8)
    assert found["outliers"] == fit.outliers()[fit.outliers()].index.tolist()
    assert found["outliers"][:4] == [0, 1, 2, 3]
    assert found["converged"] is found["stable"] is True
    assert found["warnings"] == []
    told = [value for value in found["prob_bad"] if value is not None]
    assert told == pytest.approx(fit.prob_bad.tolist(), rel=1e-8)
    assert [i for i, value in enumerate(found["prob_bad"]) if value is None] == [7, 9]
    assert found["explanations"] == [
        pytest.approx(row) if row["bic"] else row for row in fit.explanations.to_dict("records")
    ]


def test_json_of_a_classical_fit_has_no_infinity(stars, run):
    found = record(run(*FIT[:-1], "0", "--format", "json"))
    assert found["lambda"] is None


def test_json_repeats_the_warnings(rows, run):
    done = run("fit", "y ~ np.log(x)", "rows.csv", "--eps-bar", "0.1", "--format", "json")
    assert "invalid value encountered in log" in record(done)["warnings"]
    assert done.err.count("rrmstats: warning: ") == len(record(done)["warnings"])


@pytest.mark.parametrize(
    ("argv", "model", "term"),
    [
        (["label ~ x", "--model", "logit"], lambda d: rrmstats.logit("label ~ x", d, 0.1), "x"),
        (
            ["word ~ x", "--model", "logit", "--level", "sick"],
            lambda d: rrmstats.logit("label ~ x", d, 0.1),
            "x",
        ),
        (
            ["count ~ x", "--model", "poisson", "--exposure", "time"],
            lambda d: rrmstats.poisson("count ~ x", d, 0.1, exposure=d["time"]),
            "x",
        ),
        (
            ["count ~ x", "--model", "negative-binomial", "--exposure", "time"],
            lambda d: negative_binomial(d.dropna()),
            "alpha",
        ),
        pytest.param(
            ["count ~ x", "--model", "negative-binomial", "--groups", "firm"],
            lambda d: negative_binomial(d.dropna(), groups=d.dropna()["firm"], exposure=None),
            "x",
            marks=pytest.mark.slow,
        ),
        (
            ["time ~ x", "--groups", "firm"],
            lambda d: rrmstats.ols("time ~ x", d, 0.1, groups="firm"),
            "x",
        ),
        (["~ x + y", "--model", "cov"], lambda d: rrmstats.cov("~ x + y", d, 0.1), "mean[x]"),
        (
            ["~ x + y + time", "--model", "pca", "--n-components", "2"],
            lambda d: rrmstats.pca("~ x + y + time", d, 0.1, n_components=2),
            "comp_1",
        ),
    ],
)
def test_each_model(argv, model, term, rows, run):
    formula, *options = argv
    done = run("fit", formula, "rows.csv", "--eps-bar", "0.1", "--format", "json", *options)
    fit = model(rows).fit()
    assert record(done)["params"][term] == pytest.approx(fit.params[term], rel=1e-6)
    if "pca" in argv:
        loadings = record(done)["loadings"]["comp_1"]
        assert loadings == pytest.approx(fit.loadings["comp_1"].to_dict())


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (("cluster", "--cluster", "firm"), lambda d: {"groups": d["firm"]}),
        (("HAC", "--maxlags", "2"), lambda d: {"maxlags": 2}),
    ],
)
def test_kinds_of_standard_errors(options, keywords, rows, run):
    argv = ("fit", "y ~ x", "rows.csv", "--eps-bar", "0.1", "--format", "json", "--cov-type")
    found = record(run(*argv, *options))
    model = rrmstats.ols("y ~ x", rows, 0.1)
    fit = model.fit(cov_type=options[0], cov_kwds=keywords(rows))
    assert found["cov_type"] == options[0]
    assert found["bse"] == pytest.approx(fit.bse.to_dict(), rel=1e-8)
    assert found["bse"] != pytest.approx(model.fit().bse.to_dict(), rel=1e-3)


def test_family_and_link(rows, run):
    import statsmodels.api as sm

    family = sm.families.Gamma(sm.families.links.Log())
    fit = rrmstats.glm("time ~ x", rows, 0.1, family=family).fit(stability=False)
    options = ("--model", "glm", "--family", "gamma", "--link", "log", "--format", "json")
    done = run("fit", "time ~ x", "rows.csv", "--eps-bar", "0.1", *options)
    assert record(done)["params"] == pytest.approx(fit.params.to_dict(), rel=1e-8)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "xlsx"])
def test_weights_stand_beside_all_rows(suffix, rows, folder, run):
    done = run("fit", "y ~ x", "rows.csv", "--eps-bar", "0.1", "--weights", f"out.{suffix}")
    assert done.status == 0
    readers = {"parquet": pd.read_parquet, "xlsx": pd.read_excel}
    read = readers.get(suffix, lambda path: pd.read_csv(path, sep=None, engine="python"))
    found, fit = read(folder / f"out.{suffix}"), rrmstats.ols("y ~ x", rows, 0.1).fit()
    told = ["prob_bad"] if hasattr(fit, "prob_bad") else []
    names = [*rows.columns, "weight", *told, "outlier", "residual", "distance"]
    assert found.columns.tolist() == names
    pd.testing.assert_frame_equal(found[["x", "y"]], rows[["x", "y"]])
    assert found.loc[[7, 9], names[-4:]].isna().all(axis=None)
    kept = found.drop(index=[7, 9])
    np.testing.assert_allclose(kept["weight"], fit.weights, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(kept["residual"], fit.resid, rtol=1e-8)
    np.testing.assert_allclose(kept["distance"], fit.resid_scaled, rtol=1e-8)
    assert kept["outlier"].astype(bool).tolist() == fit.outliers().tolist()


def test_text_stays_as_it_was_written(folder, run):
    lines = ["id,when,y,x,note"]
    lines += [f"{i:03d},2024-01-{i + 1:02d},{i + 0.5:.2f},{i}.10,NA" for i in range(9)]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    assert run("fit", "y ~ x", "data.csv", "--eps-bar", "0", "--weights", "out.csv").status == 0
    found = (folder / "out.csv").read_text().splitlines()
    assert [line.rsplit(",", 5)[0] for line in found] == lines


def test_text_that_begins_like_a_formula_stays_text_in_excel(stars, folder, run):
    stars.assign(note="=1+1").to_csv("stars.csv", index=False)
    run(*FIT, "--weights", "out.xlsx")
    assert set(pd.read_excel(folder / "out.xlsx")["note"]) == {"=1+1"}


def test_decimals_are_numbers(stars, folder, run):
    exact = stars.assign(log_te=[Decimal(str(value)) for value in stars["log_te"]])
    exact.to_parquet("stars.parquet")
    done = run(*FIT[:2], "stars.parquet", *FIT[3:], "--format", "json")
    assert record(done)["params"] == record(run(*FIT, "--format", "json"))["params"]


def test_a_level_of_a_response_in_quotes(rows, run):
    rows.assign(**{"the label": rows["label"] + 1}).to_csv("rows.csv", index=False)
    options = ("rows.csv", "--eps-bar", "0.1", "--format", "json", "--model", "logit")
    quoted = run("fit", 'Q("the label") ~ y', *options, "--level", "2")
    plain = run("fit", "label ~ y", *options)
    assert record(quoted)["params"] == record(plain)["params"]


def test_what_is_printed_to_a_file_is_utf_8(rows, folder, monkeypatch):
    rows.rename(columns={"x": "größe"}).to_csv("rows.csv", index=False)
    with (folder / "page.html").open("w", encoding="ascii") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert main(["fit", "y ~ größe", "rows.csv", "--eps-bar", "0", "--format", "html"]) == 0
    assert "größe" in (folder / "page.html").read_text(encoding="utf-8")


def test_columns_of_the_user_are_never_replaced(rows, folder, run):
    data = rows.assign(weight=range(len(rows)), rrm_outlier="mine")
    data.to_csv("rows.csv", index=False)
    run("fit", "~ x + y", "rows.csv", "--model", "cov", "--eps-bar", "0.1", "--weights", "o.csv")
    found = pd.read_csv(folder / "o.csv")
    added = [f"rrm_rrm_{name}" for name in ("weight", "prob_bad", "outlier", "distance")]
    assert found.columns.tolist() == [*data.columns, *added]
    assert found["weight"].tolist() == data["weight"].tolist()


@pytest.mark.parametrize("form", ["tsv", "parquet", "excel", "csv"])
def test_data_from_standard_input(form, rows, run, monkeypatch):
    file = io.BytesIO()
    write = {"parquet": rows.to_parquet, "excel": rows.to_excel, "tsv": rows.to_csv}
    options = {"parquet": {}, "excel": {"index": False}, "tsv": {"index": False, "sep": "\t"}}
    write.get(form, rows.to_csv)(file, **options.get(form, {"index": False}))
    file.seek(0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
    argv = ["fit", "y ~ x", "-", "--eps-bar", "0.1", "--format", "json"]
    done = run(*argv, *([] if form == "csv" else ["--input-format", form]))
    fit = rrmstats.ols("y ~ x", rows, 0.1).fit()
    assert record(done)["params"] == pytest.approx(fit.params.to_dict(), rel=1e-8)


def test_latex_escapes_names(stars, run):
    stars.rename(columns={"log_te": "a&b_%$#"}).to_csv("stars.csv", index=False)
    formula = 'log_light ~ Q("a&b_%$#")'
    text = run("fit", formula, "stars.csv", "--eps-bar", "0.2", "--format", "latex").out
    assert r"a\&b\_\%\$\#" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 3
    assert r"8.5 \%" in text  # a bare % would hide the rest of a line


@pytest.mark.parametrize("form", ["latex", "html"])
def test_each_note_is_one_paragraph(form, stars, run):
    fit = rrmstats.ols(FIT[1], stars, eps_bar=0.2).fit(steps=1)
    text = run(*FIT, "--format", form, "--steps", "1").out
    mark = r"\noindent " if form == "latex" else "<p>["
    assert max(map(len, fit._notes())) > 93  # longer than a line of a summary
    assert text.count(mark) == len(fit._notes())


def test_html_is_a_document_that_escapes_names(stars, run):
    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.seen, self.text = [], set(), ""

        def handle_starttag(self, tag, attrs):
            self.seen.add(tag)
            if tag != "meta":
                self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

        def handle_data(self, data):
            self.text += data

    stars.rename(columns={"log_te": "<script>x"}).to_csv("stars.csv", index=False)
    formula = 'log_light ~ Q("<script>x")'
    page = run("fit", formula, "stars.csv", "--eps-bar", "0.2", "--format", "html").out
    reader = Reader()
    reader.feed(page)
    assert page.startswith("<!DOCTYPE html>")
    assert reader.open == []
    assert "script" not in reader.seen
    assert formula in reader.text and "Most likely bad rows" in reader.text


@pytest.mark.slow
def test_path_prints_its_summary_and_writes_files(stars, folder, run):
    files = ("--report", "p.html", "--plot", "p.svg", "--table", "p.csv")
    done = run("path", FIT[1], "stars.csv", *files)
    path = rrmstats.ols(FIT[1], stars, eps_bar=0).path()
    assert done.out == f"{path.summary().as_text()}\n"
    table = pd.read_csv(folder / "p.csv")
    pd.testing.assert_frame_equal(table, path.frame, check_exact=False, rtol=1e-8)
    assert (folder / "p.svg").read_bytes().startswith(b"<?xml")
    assert (folder / "p.html").read_text().startswith("<!DOCTYPE html>")
    again = run("path", FIT[1], "stars.csv", "--out", "p.txt")
    assert again.out == ""
    assert (folder / "p.txt").read_text() == done.out


def test_data_that_ship(stars, run):
    listed = run("datasets").out
    assert all(f"{name}: " in listed for name in rrmstats.datasets.available())
    printed = pd.read_csv(io.StringIO(run("datasets", "stars_cyg").out))
    pd.testing.assert_frame_equal(printed, stars)


@pytest.mark.parametrize("name", ["4a", "fig4a", "Figure4A"])
def test_replicate_by_a_short_name(name, folder, run):
    done = run("replicate", name, "--runs", "1", "--out", "new")
    assert done.status == 0
    assert done.err == ""
    assert (folder / "new" / "figure4a.csv").exists()


def test_without_a_checkout_replicate_says_where_the_experiments_are(folder, refused, monkeypatch):
    monkeypatch.setattr(rrmstats, "__file__", str(folder / "rrmstats" / "__init__.py"))
    assert "run this command in a checkout of rrmstats" in refused("replicate", "4a", status=2)


def test_version(run, capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        run("--version")
    assert capsys.readouterr().out == f"rrmstats {rrmstats.__version__}\n"


@pytest.mark.parametrize("command", ["fit", "path"])
def test_the_help_says_that_formulas_run_python(command, run, capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        run(command, "--help")
    text = " ".join(capsys.readouterr().out.split())
    assert "Formulas run Python code" in text
    assert "--safe" in text


def test_a_level_of_a_response_of_numbers_is_a_number(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(80)
    coded = np.where(rng.random(80) < 1 / (1 + np.exp(-2 * x)), 2, 1)
    pd.DataFrame({"x": x, "coded": coded}).to_csv(tmp_path / "coded.csv", index=False)
    argv = ["fit", "coded ~ x", str(tmp_path / "coded.csv"), "--model", "logit", "--level", "2"]
    assert main([*argv, "--eps-bar", "0.02", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["params"]["x"] > 1


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ x * C(firm % 2) + np.log(time)",
        "y ~ 0 + time:group",
        'y ~ Q("a b") + x',
        "y ~ log(time)",
    ],
)
def test_both_engines_of_statsmodels_fit_the_same(formula, rows, run, engine):
    done = run("fit", formula, "rows.csv", "--eps-bar", "0.1", "--format", "json")
    fit = rrmstats.ols(formula, rows, 0.1, eval_env={"np": np, "log": np.log}).fit()
    assert json.loads(done.out)["params"] == pytest.approx(fit.params.to_dict(), rel=1e-8)
    assert done.status == 0


@pytest.mark.parametrize(("model", "formula"), [("cov", "~ x + time"), ("logit", "label ~ x")])
def test_both_engines_serve_every_model(model, formula, rows, run, engine):
    argv = ("rows.csv", "--eps-bar", "0.1", "--model", model, "--steps", "1")
    done = run("fit", formula, *argv)
    assert done.status == 0
    assert "2 of 60 rows were left out: missing values" in done.err


@pytest.mark.parametrize(
    ("formula", "line"),
    [
        ("y ~ tme", "there is no column 'tme'; did you mean 'time'?"),
        ("y ~ foo(x)", "there is no function 'foo'"),
        ("y ~ (x", "cannot parse the formula 'y ~ (x'"),
        ("y", "the formula 'y' has no"),
    ],
)
def test_both_engines_refuse_formulas_that_are_wrong(formula, line, rows, refused, engine):
    assert line in refused("fit", formula, "rows.csv", "--eps-bar", "0.1", status=2)


def test_what_an_engine_cannot_evaluate_is_one_line(rows, refused, engine):
    found = refused("fit", "y ~ I(x.nothing)", "rows.csv", "--eps-bar", "0.1", status=1)
    assert found.startswith("cannot evaluate 'y ~ I(x.nothing)': ")


def test_safe_formulas_are_evaluated_by_patsy(rows, run, engine):
    assert run("fit", "y ~ x", "rows.csv", "--eps-bar", "0.1", "--safe").status == 0
    assert statsmodels.formula.options.formula_engine == "patsy"
