"""How often a notebook shows a figure, in a kernel of its own."""

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

SETUP = """import matplotlib.pyplot as plt, rrmstats
stars = rrmstats.datasets.stars_cyg.load_pandas().data
res = rrmstats.ols("log_light ~ log_te", stars, eps_bar=0.2).fit(n_starts=5)"""
CELLS = {
    "res.plot_weights()": 1,
    "fig = res.plot_weights()": 1,
    "fig": 1,  # again, because it was asked for
    "res.plot_weights();": 1,
    "res.plot_weights()\nres.plot_trace()": 2,
    "fig, ax = plt.subplots()\nres.plot_weights(ax=ax);": 1,
    "plt.get_fignums()": 0,
}


@pytest.mark.slow
def test_every_figure_appears_once(monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel's own
    cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, *CELLS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    found = {
        cell["source"]: sum("image/png" in output.get("data", {}) for output in cell["outputs"])
        for cell in notebook["cells"][1:]
    }
    assert found == CELLS
    assert notebook["cells"][-1]["outputs"][0]["data"]["text/plain"] == "[]"


def test_a_script_shows_it_by_pyplot(fits):
    """A figure is one of pyplot's until a notebook has shown it; other figures stay open."""
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = fits["stars"].plot_weights()
    assert plt.get_fignums() == [figure.number]
    with pytest.raises(NotImplementedError):  # by which IPython shows it like any figure
        figure._ipython_display_()
    assert plt.get_fignums() == [figure.number]
