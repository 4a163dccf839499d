// A touch on a line or a point, or a pointer over it, shows its text.
for (const kind of ["click", "pointerover"]) {
  document.addEventListener(kind, (event) => {
    const mark = event.target.closest("svg [aria-label]:not(svg)");
    document.querySelector("output").textContent = mark ? mark.getAttribute("aria-label") : "";
  });
}
