// The filter of the claims, the contents, and the buttons that copy a command.
(() => {
  "use strict";

  const filters = [...document.querySelectorAll(".filter button")];
  const rows = [...document.querySelectorAll("table.claims tbody tr")];
  const filter = (verdict) => {
    for (const button of filters) button.setAttribute("aria-pressed", String(button.dataset.verdict === verdict));
    for (const row of rows) row.hidden = verdict !== "" && row.dataset.verdict !== verdict;
  };
  for (const button of filters) button.addEventListener("click", () => filter(button.dataset.verdict));

  // A link to a row that is filtered out shows all rows.
  addEventListener("hashchange", () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (row && row.hidden) {
      filter("");
      row.scrollIntoView();
    }
  });

  const select = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        select(code); // where the page may not copy, the reader can
        button.textContent = "Selected";
      }
      setTimeout(() => {
        button.textContent = "Copy";
      }, 1500);
    });
  }

  const contents = document.querySelector("nav.contents");
  const unfold = contents.querySelector("button.unfold");
  const fold = (open) => {
    contents.classList.toggle("open", open);
    unfold.setAttribute("aria-expanded", String(open));
  };
  unfold.addEventListener("click", () => fold(!contents.classList.contains("open")));

  const links = new Map();
  for (const link of contents.querySelectorAll("a")) {
    links.set(link.getAttribute("href").slice(1), link);
    link.addEventListener("click", () => fold(false));
  }

  // What is read now stands out in the contents.
  const read = new Map();
  const mark = () => {
    const current = [...links.keys()].filter((name) => read.get(name)).pop();
    for (const [name, link] of links) {
      if (name === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  const reading = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) read.set(entry.target.id, entry.isIntersecting);
      mark();
    },
    { rootMargin: "-20% 0px -75% 0px" },
  );
  for (const name of links.keys()) {
    const target = document.getElementById(name);
    if (target) reading.observe(target);
  }
})();
