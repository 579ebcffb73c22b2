"use strict";
// One page of linked panels. Trace k of the panels of rows is the k-th of `rows`, which are groups
// where these have the weights; the other panels show a highlighted one by the value of eps_bar at
// which it leaves.
(function () {
  const { unit, panels, rows } = JSON.parse(document.getElementById("path-data").textContent);
  const COLORS = ["#000000", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const ROW_PANELS = ["rows", "residuals"];
  const OTHER_PANELS = ["coefficients", "fit"];
  const element = (id) => document.getElementById(id);
  const chosen = new Map(); // from the number of a row to its color
  let turn = 0;

  function nextColor() {
    return COLORS[turn++ % COLORS.length];
  }

  function styleOf(panel, k) {
    const own = panels[panel].data[k].line;
    const color = chosen.get(k);
    return color === undefined
      ? { color: own.color, width: own.width, zorder: 0 }
      : { color: color, width: 4, zorder: 10 };
  }

  function styleRows(numbers) {
    for (const panel of ROW_PANELS) {
      const styles = numbers.map((k) => styleOf(panel, k));
      const change = {
        "line.color": styles.map((s) => s.color),
        "line.width": styles.map((s) => s.width),
        zorder: styles.map((s) => s.zorder),
      };
      Plotly.restyle(element(panel), change, numbers);
    }
  }

  // The axes of a panel, as plotly numbers them.
  function axesOf(panel) {
    return Object.keys(panels[panel].layout)
      .filter((key) => key.startsWith("xaxis"))
      .map((key) => key.slice(5));
  }

  // One line and one label per place, even where several rows leave together.
  function leavingMarks() {
    const places = new Map();
    for (const [k, color] of chosen) {
      const { leaves, shown } = rows[k];
      if (leaves !== null) {
        const found = places.get(leaves) || { color: color, names: [] };
        found.names.push(shown);
        places.set(leaves, found);
      }
    }
    return places;
  }

  function markOthers() {
    const places = leavingMarks();
    for (const panel of OTHER_PANELS) {
      const { shapes, annotations } = panels[panel].layout;
      const lines = [];
      const labels = [];
      for (const number of axesOf(panel)) {
        for (const [x, { color, names }] of places) {
          const at = { xref: "x" + number, yref: "y" + number + " domain" };
          const line = { color: color, width: 3, dash: "dot" };
          lines.push({ ...at, type: "line", x0: x, x1: x, y0: 0, y1: 1, line: line });
          const text = names.length > 3 ? names.length + " " + unit + "s" : names.join(", ");
          labels.push({ ...at, x: x, y: 1, yanchor: "top", xanchor: "left", text: text,
            showarrow: false, font: { color: color, size: 11 }, bgcolor: "rgba(255,255,255,0.8)" });
        }
      }
      Plotly.relayout(element(panel), {
        shapes: shapes.concat(lines),
        annotations: annotations.concat(labels),
      });
    }
  }

  function cell(tag, text, line) {
    const made = document.createElement(tag);
    made.textContent = text;
    line.appendChild(made);
    return made;
  }

  function leavingText(row) {
    return row.leaves === null ? "nowhere" : String(row.leaves);
  }

  function listChosen() {
    const body = element("chosen-rows");
    body.replaceChildren();
    for (const [k, color] of chosen) {
      const line = document.createElement("tr");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "release";
      button.addEventListener("click", () => change([k]));
      cell("th", rows[k].name, line).style.borderLeft = "0.6rem solid " + color;
      line.appendChild(document.createElement("td")).appendChild(button);
      cell("td", leavingText(rows[k]), line);
      for (const [, value] of rows[k].values) cell("td", value, line);
      body.appendChild(line);
    }
    element("chosen").hidden = chosen.size === 0;
    element("none-chosen").hidden = chosen.size > 0;
  }

  // Highlight rows together; release them if all of them are highlighted.
  function change(numbers) {
    const release = numbers.every((k) => chosen.has(k));
    const color = release ? null : nextColor();
    for (const k of numbers) {
      if (release) chosen.delete(k);
      else chosen.set(k, color);
    }
    if (chosen.size === 0) turn = 0;
    styleRows(numbers);
    markOthers();
    listChosen();
  }

  function find(event) {
    const k = rows.findIndex((row) => row.name === event.target.value);
    element("not-found").hidden = k >= 0 || event.target.value === "";
    if (k >= 0) {
      if (!chosen.has(k)) change([k]);
      event.target.value = "";
    }
  }

  function start() {
    // Only these buttons: plotly's own choice includes one that sends the data to a server.
    const config = {
      responsive: true,
      displaylogo: false,
      showSendToCloud: false,
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    };
    const drawn = Object.entries(panels).map(([name, panel]) =>
      Plotly.newPlot(element(name), structuredClone(panel.data), structuredClone(panel.layout), config)
    );
    for (const name of ROW_PANELS) {
      element(name).on("plotly_click", (event) => change([event.points[0].curveNumber]));
    }
    element("find").addEventListener("change", find);
    element("release").addEventListener("click", () => change([...chosen.keys()]));
    for (const button of document.querySelectorAll("button[data-rows]")) {
      button.addEventListener("click", () => change(JSON.parse(button.dataset.rows)));
    }
    return Promise.all(drawn).then(() => document.body.classList.add("ready"));
  }

  start();
})();
