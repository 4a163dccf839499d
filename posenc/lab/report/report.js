// On screens without a pointer that hovers: a touch on a line or a point shows what it is.
document.addEventListener("click", (event) => {
  const group = event.target.closest("svg g");
  const title = group && group.querySelector(":scope > title");
  document.querySelector("output").textContent = title ? title.textContent : "";
});
