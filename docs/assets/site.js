// Names for parts of the theme that a screen reader would otherwise announce without one, and
// tables and code that are wider than the page can be scrolled with the keyboard.
function nameParts() {
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
  document.querySelectorAll("nav.md-code__nav:not([aria-label])").forEach((nav) => {
    const block = nav.closest(".highlight")?.querySelector("code")?.textContent ?? "";
    nav.setAttribute("aria-label", `Code: ${block.trim().slice(0, 60)} (${nav.parentElement.id})`);
  });
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((wrap) => {
    if (wrap.scrollWidth > wrap.clientWidth) wrap.tabIndex = 0;
  });
}

new MutationObserver(nameParts).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", nameParts);
nameParts();
