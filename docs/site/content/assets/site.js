// The grid of schemes: menus hide what does not match, and the address keeps what was chosen.
for (const form of document.querySelectorAll("form[data-filters]")) {
  const tiles = [...document.querySelectorAll(`#${form.dataset.filters} > li`)];
  const menus = [...form.querySelectorAll("select")];
  const count = form.querySelector(".count");
  const wanted = new URLSearchParams(location.hash.slice(1));
  for (const menu of menus) {
    if ([...menu.options].some((option) => option.value === wanted.get(menu.name))) menu.value = wanted.get(menu.name);
  }
  const show = () => {
    let shown = 0;
    for (const tile of tiles) {
      const fits = menus.every((menu) => !menu.value || tile.dataset[menu.name].split("|").includes(menu.value));
      tile.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${tiles.length}`;
    const chosen = new URLSearchParams(menus.filter((menu) => menu.value).map((menu) => [menu.name, menu.value]));
    history.replaceState(null, "", chosen.size ? `#${chosen}` : location.pathname);
  };
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
}

// Names and keys that the theme leaves out: of the search, and of tables that scroll.
document.querySelector(".md-search").setAttribute("aria-label", "Search");
addEventListener("load", () => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) wrap.tabIndex = 0;
});
