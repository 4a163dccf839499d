// The atlas: menus choose among the lines of the data; the heat map, the table and the curve show what was chosen, and
// the address keeps it.
(() => {
  const STEP = 17;  // pixels of a row
  const data = window.posencAtlas;
  const menus = document.getElementById("atlas-menus").elements;
  const picks = document.getElementById("atlas-picks").elements;
  const wanted = new URLSearchParams(location.hash.slice(1));  // what the address names and no menu has taken yet
  let heat = null;
  let cells = [];
  let height = 0;
  let points = [];
  let how = {};
  let scheme = "";

  const number = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));
  const short = (text) => text.replace(/^0\./, ".").replace(/^1\.00$/, "1");  // of which eleven fit on a phone
  const times = (value) => (value === null || value === undefined ? "–" : String(value));

  function lines() {
    const metric = menus.metric.value;
    const words = menus.words.value.toLowerCase().split(/\s+/);
    const fits = (line) =>
      words.every((word) => line.row.toLowerCase().includes(word)) && line.model === menus.model.value && line.rate === menus.rate.value &&
      (!menus.family.value || line.family === menus.family.value);
    return data.cells.filter(fits).map((line) => {
      const learned = line.reach !== null;
      const value = line[metric];
      const above = metric === "reach" ? (value ?? 0) / 4 : ((value ?? 0) - line.floor) / (1 - line.floor);
      const text = metric !== "reach" ? number(value) : learned ? times(value) : number(line.trained);
      return {
        ...line, learned, value, text, short: short(text),
        above: Math.max(0, Math.min(1, above)),
        "L, 1_25 L, 2 L, 4 L": [line.x1, line.x1_25, line.x2, line.x4].map(number).join("  "),
        "holds to": learned ? `${line.reach} L` : `not learned: ${number(line.trained)} at a size trained on`,
        "baseline at 2 L": number(line.floor),
        rate: line.at,
        lost: line.lost || "none",
      };
    });
  }

  function ordered(chosen) {
    const families = [...menus.family.options].map((option) => option.value);
    const first = new Map(chosen.map((line) => [line.row, line]));
    const by = menus.sort.value;
    const score = new Map(chosen.filter((line) => line.probe === by).map((line) => [line.row, line]));
    const rank = (row) => {
      const line = score.get(row);
      return line && line.value !== null ? (line.learned ? 10 : 0) + line.value : -1;
    };
    const named = (a, b) => a.localeCompare(b);
    const family = (a, b) => families.indexOf(first.get(a).family) - families.indexOf(first.get(b).family);
    return [...first.keys()].sort((a, b) =>
      by === "row" ? named(a, b) : by === "" ? family(a, b) || named(a, b) : rank(b) - rank(a) || named(a, b));
  }

  function options(select, choices, blank) {
    const before = wanted.get(select.name) ?? select.value;
    wanted.delete(select.name);
    select.replaceChildren(...choices.map(([value, text]) => new Option(text, value)));
    select.value = choices.some(([value]) => value === before) ? before : blank;
  }

  function table(rows, probes, chosen) {
    const at = new Map(chosen.map((line) => [`${line.row}\n${line.probe}`, line]));
    const cell = (name, text, kind) => {
      const made = document.createElement(name);
      made.textContent = text;
      if (kind) made.scope = kind;
      return made;
    };
    const body = document.querySelector("#atlas-table tbody");
    const head = document.querySelector("#atlas-table thead tr");
    head.replaceChildren(...["scheme", ...probes].map((name) => cell("th", name, "col")));
    body.replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr");
      line.append(cell("th", row, "row"), ...probes.map((probe) => {
        const of = at.get(`${row}\n${probe}`);
        return cell("td", !of ? "–" : of.learned ? of.text : `(${of.text})`);
      }));
      return line;
    }));
    const metric = menus.metric.selectedOptions[0].text;
    const rate = menus.rate.selectedOptions[0].text;
    document.querySelector("#atlas-table caption").textContent =
      `${metric}, ${menus.model.value}s, learning rate ${rate}; in brackets: not learned`;
  }

  function show() {
    const probes = data.probes[menus.model.value].filter((probe) =>
      data.cells.some((line) => line.probe === probe && line.model === menus.model.value));
    options(menus.sort, [["", "family"], ["row", "name"], ...probes.map((p) => [p, `${p}: ${data.titles[p]}`])], "");
    const chosen = lines();
    const rows = ordered(chosen);
    const place = new Map(rows.map((row, at) => [row, at]));
    const column = new Map(probes.map((probe, at) => [probe, at]));
    for (const line of chosen) line.place = place.get(line.row);  // by which the heat map sorts its rows
    chosen.sort((a, b) => place.get(a.row) - place.get(b.row) || column.get(a.probe) - column.get(b.probe));
    document.getElementById("atlas-count").textContent =
      `${rows.length} ${rows.length === 1 ? "row" : "rows"}, ${probes.length} tasks, ${chosen.length} cells.`;
    table(rows, probes, chosen);
    options(picks.row, rows.map((row) => [row, row]), rows.includes("rope") ? "rope" : rows[0]);
    options(picks.probe, probes.map((probe) => [probe, data.titles[probe]]), probes[0]);
    cells = chosen;
    height = STEP * rows.length;
    if (heat) heat.data("cells", cells).height(height).runAsync();
    showPlaces();
  }

  function showPlaces() {
    const of = data.places.filter((line) => line.model === menus.model.value && line.probe === picks.probe.value);
    const shown = of.filter((line) => line.row === picks.row.value || line.row === "nope");
    points = shown.flatMap((line) => line.line.map(([place, right]) => ({ row: line.row, place, right })));
    const own = shown.find((line) => line.row === picks.row.value);
    document.getElementById("atlas-words").textContent = own
      ? `${own.row} in examples of size ${own.size}: from ${own.line[0][1]} at position ${own.line[0][0]} to ` +
        `${own.line.at(-1)[1]} at position ${own.line.at(-1)[0]}; medians of seeds, at the chosen rate.`
      : "The records have no shares by position here: the task has one answer, or was not run.";
    document.getElementById("atlas-places").hidden = !own;
    const chosen = [...menus, ...picks].filter((menu) => menu.value).map((menu) => [menu.name, menu.value]);
    history.replaceState(null, "", `#${new URLSearchParams(chosen)}`);
    if (heat && own) embed("#atlas-places", { ...data.lines, datasets: { places: points } });
  }

  async function embed(place, chart) {
    const { view } = await vegaEmbed(place, chart, how);
    const menu = document.querySelector(`${place} summary`);
    if (menu) menu.setAttribute("aria-label", "Save this chart");
    return view;
  }

  async function draw() {
    if (scheme === document.body.dataset.mdColorScheme && heat) return;
    scheme = document.body.dataset.mdColorScheme;
    const ink = getComputedStyle(document.querySelector(".md-typeset")).color;
    const words = { labelColor: ink, titleColor: ink, gridColor: "#8884", domainColor: "#8888", tickColor: "#8888" };
    const config = { background: "transparent", axis: words, axisY: { labelLimit: innerWidth < 600 ? 100 : 150 }, legend: words };
    const actions = { export: true, source: false, compiled: false, editor: false };
    how = { renderer: "svg", actions, config };
    show();
    heat = await embed("#atlas-chart", { ...data.heat, height, datasets: { cells } });
    heat.addEventListener("click", (event, item) => {
      if (!item || !item.datum || !item.datum.probe) return;
      picks.row.value = item.datum.row;
      picks.probe.value = item.datum.probe;
      showPlaces();
    });
    showPlaces();
  }

  for (const menu of menus) {
    const value = wanted.get(menu.name);
    const fits = menu.options ? [...menu.options].some((option) => option.value === value) : value !== null;
    if (fits) menu.value = value;
  }
  document.getElementById("atlas-menus").addEventListener("input", show);
  document.getElementById("atlas-picks").addEventListener("change", showPlaces);
  for (const id of ["atlas-menus", "atlas-picks"]) {
    document.getElementById(id).addEventListener("submit", (event) => event.preventDefault());
  }
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ["data-md-color-scheme"] });
  draw();
})();
