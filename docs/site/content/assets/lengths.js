// Accuracy by size: a menu chooses the task, a name below brings its line forward and says its numbers.
(() => {
  const section = document.getElementById("lengths");
  const charts = JSON.parse(section.querySelector("script").textContent);
  const menu = section.querySelector("select");
  const keys = section.querySelector(".keys");
  const place = section.querySelector(".chart");
  const words = section.querySelector("[role=status]");
  const actions = { export: true, source: false, compiled: false, editor: false };
  const picked = new Set();

  async function show() {
    const { chart, lines } = charts[menu.value];
    const some = lines.some((line) => picked.has(line.name));
    const points = lines.flatMap(({ name, colour, dash, points: at }) =>
      at.map((point) => ({ name, colour, dash, faint: some && !picked.has(name), ...point })));
    words.textContent = lines.filter((line) => picked.has(line.name)).map((line) =>
      `${line.name}: ${line.points.map((point) => `${Number(point.y.toFixed(4))} at ${point.x}`).join(", ")}.`).join(" ");
    await vegaEmbed(place, { ...chart, datasets: { ...chart.datasets, lines: points } }, { renderer: "svg", actions });
    place.querySelector("summary").setAttribute("aria-label", "Save this chart");
  }

  function key({ name, colour, dash }) {
    const item = document.createElement("li");
    item.innerHTML = '<button type="button"><svg viewBox="0 0 26 6" aria-hidden="true"><path d="M0 3H26"/></svg></button>';
    const button = item.firstChild;
    button.append(name);
    button.querySelector("path").setAttribute("stroke", colour);
    button.querySelector("path").setAttribute("stroke-dasharray", dash.join(" "));
    button.setAttribute("aria-pressed", picked.has(name));
    button.addEventListener("click", () => {
      picked.delete(name) || picked.add(name);
      button.setAttribute("aria-pressed", picked.has(name));
      show();
    });
    return item;
  }

  function choose() {
    keys.replaceChildren(...charts[menu.value].lines.map(key));
    show();
  }

  section.hidden = false;
  section.querySelector("form").hidden = charts.length < 2;
  section.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  menu.addEventListener("change", choose);
  choose();
})();
