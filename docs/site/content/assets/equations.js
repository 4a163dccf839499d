// MathJax sets each equation once it is there; until then, and without scripts, readers see it as it was written.
window.MathJax = {
  options: { enableMenu: false },
  startup: {
    typeset: false,
    pageReady() {
      document.head.append(MathJax.svgStylesheet());
      for (const place of document.querySelectorAll("[data-tex]")) place.replaceChildren(MathJax.tex2svg(place.dataset.tex, { display: false }));
    },
  },
};
