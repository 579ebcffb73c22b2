import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from statsmodels.datasets.utils import Dataset

from rrmstats import datasets

NAMES = datasets.available()
FOLDER = next(folder for folder in datasets._FOLDERS if folder.is_dir())


def test_every_file_is_listed():
    files = {path.stem for path in FOLDER.iterdir()}
    assert sorted(files) == NAMES


@pytest.mark.parametrize(
    ("name", "data", "endog", "exog"),
    [
        ("breast_cancer", (699, 11), (683,), (683, 9)),
        ("hbk", (75, 4), (75,), (75, 3)),
        ("phones", (24, 2), (24,), (24, 1)),
        ("stars_cyg", (47, 2), (47,), (47, 1)),
    ],
)
def test_shapes(name, data, endog, exog):
    loaded = getattr(datasets, name).load_pandas()
    assert (loaded.data.shape, loaded.endog.shape, loaded.exog.shape) == (data, endog, exog)


@pytest.mark.parametrize("name", NAMES)
def test_load_pandas_is_laid_out_as_in_statsmodels(name):
    loaded = getattr(datasets, name).load_pandas()
    assert isinstance(loaded, Dataset)
    assert loaded.names == list(loaded.data.columns)
    assert loaded.endog.name == loaded.endog_name
    assert loaded.exog_name == list(loaded.exog.columns)
    assert loaded.endog_name not in loaded.exog_name
    complete = loaded.data.dropna()
    pd.testing.assert_series_equal(loaded.endog, complete[loaded.endog_name])
    pd.testing.assert_frame_equal(loaded.exog, complete[loaded.exog_name])


@pytest.mark.parametrize("name", NAMES)
def test_each_load_is_a_copy(name):
    shipped = getattr(datasets, name)
    shipped.load().exog.iloc[:] = 0
    assert (shipped.load().exog != 0).any(axis=None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text", ["TITLE", "DESCRSHORT", "DESCRLONG", "SOURCE", "COPYRIGHT", "NOTE"]
)
def test_texts_are_filled_and_hold_no_markup_of_their_neighbors(name, text):
    value = getattr(getattr(datasets, name), text)
    assert value == value.strip() != ""
    assert "#" not in value


@pytest.mark.parametrize("name", NAMES)
def test_note_describes_every_column_of_the_file(name):
    shipped = getattr(datasets, name)
    columns = (FOLDER / f"{name}.csv").read_text().partition("\n")[0].split(",")
    assert [column for column in columns if f"`{column}`" not in shipped.NOTE] == []


def test_breast_cancer_classes():
    cancer = datasets.breast_cancer.load_pandas()
    assert cancer.data["diagnosis"].value_counts().to_dict() == {"benign": 458, "malignant": 241}
    assert cancer.endog.value_counts().to_dict() == {0: 444, 1: 239}
    ones = cancer.endog.index[cancer.endog == 1]
    assert (cancer.data.loc[ones, "diagnosis"] == "malignant").all()


def test_breast_cancer_scores():
    cancer = datasets.breast_cancer.load_pandas()
    assert cancer.data.isna().sum().loc[lambda count: count > 0].to_dict() == {"bare_nuclei": 16}
    assert set(np.unique(cancer.exog)) == set(range(1, 11))


# Coefficients of lm() in R 4.2 on MASS::phones, robustbase::starsCYG and robustbase::hbk.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hbk", [-0.387549545925, 0.239184791710, -0.334548476826, 0.383340815249]),
        ("phones", [-9838.86794202947, 5.04147826087]),
        ("stars_cyg", [6.793467298705, -0.413303860587]),
    ],
)
def test_least_squares_as_in_r(name, expected):
    loaded = getattr(datasets, name).load_pandas()
    design = np.column_stack([np.ones(len(loaded.exog)), loaded.exog])
    coefficients = np.linalg.lstsq(design, loaded.endog, rcond=None)[0]
    assert_allclose(coefficients, expected, rtol=1e-8)


def test_missing_file_says_where_it_looked(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "_FOLDERS", (tmp_path / "a", tmp_path / "b"))
    with pytest.raises(FileNotFoundError, match=r"hbk\.csv is not in .*a or .*b; install"):
        datasets.hbk.load_pandas()


@pytest.mark.parametrize("damage", [lambda text: text[:-40], lambda text: text.replace("9", "8")])
def test_changed_file_is_refused(monkeypatch, tmp_path, damage):
    for name in ("hbk.csv", "hbk.md"):
        shutil.copy(FOLDER / name, tmp_path)
    csv = tmp_path / "hbk.csv"
    csv.write_text(damage(csv.read_text()))
    monkeypatch.setattr(datasets, "_FOLDERS", (tmp_path,))
    with pytest.raises(ValueError, match=r"hbk\.csv has sha256 .* but hbk\.md states"):
        datasets.hbk.load_pandas()


def test_package_data_comes_before_a_neighboring_folder(monkeypatch, tmp_path):
    # Next to an installed package there may be another package that is named datasets.
    monkeypatch.setattr(datasets, "_FOLDERS", (FOLDER, tmp_path))
    Path(tmp_path, "hbk.csv").write_text("not,these\n")
    assert len(datasets.hbk.load_pandas().data) == 75
