// Day or night, before anything is drawn: as the reader last chose on this page, or as the system has it.
(() => {
  "use strict";
  const root = document.documentElement;
  const key = "roundelay-theme";

  const recall = () => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // a page from disk may have no storage; then the choice lasts as long as the page
    }
  };
  const remember = (theme) => {
    try {
      localStorage.setItem(key, theme);
    } catch {
      // see above
    }
  };

  const system = matchMedia("(prefers-color-scheme: dark)");
  const current = () => root.dataset.theme || (system.matches ? "dark" : "light");
  const announce = () => document.dispatchEvent(new Event("themechange"));

  const chosen = recall();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  system.addEventListener("change", announce);

  addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("button.theme");
    const label = () => {
      button.textContent = current() === "dark" ? "☀ Light" : "☾ Dark";
    };
    button.addEventListener("click", () => {
      root.dataset.theme = current() === "dark" ? "light" : "dark";
      remember(root.dataset.theme);
      announce();
    });
    document.addEventListener("themechange", label);
    label();
  });
})();
