// Theme: applies the chosen theme before anything is drawn, and lets a button change it. A classic script in <head>.
(() => {
  const root = document.documentElement;
  const NAMES = { auto: "Auto", light: "Light", dark: "Dark" };
  const NEXT = { auto: "dark", dark: "light", light: "auto" };

  function kept() {
    try {
      return localStorage.getItem("queuectl-theme");
    } catch {
      return null; // storage may be blocked; the choice then lasts as long as the page
    }
  }

  function apply(theme) {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      button.textContent = NAMES[theme];
      button.setAttribute("aria-label", `Theme: ${NAMES[theme]}. Change to ${NAMES[NEXT[theme]]}`);
    }
  }

  let theme = kept() in NEXT ? kept() : "auto";
  apply(theme);
  document.addEventListener("DOMContentLoaded", () => apply(theme));
  addEventListener("storage", (event) => {
    if (event.key !== "queuectl-theme") return;
    theme = event.newValue in NEXT ? event.newValue : "auto";
    apply(theme);
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-theme-switch]")) return;
    theme = NEXT[theme];
    try {
      localStorage.setItem("queuectl-theme", theme);
    } catch {
      // as above
    }
    apply(theme);
  });
})();
