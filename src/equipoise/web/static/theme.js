// Before anything is drawn: the scheme that the reader chose, or that of the system.
(() => {
  const chosen = localStorage.getItem("equipoise-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme")?.addEventListener("click", () => {
      const dark = getComputedStyle(document.documentElement).getPropertyValue("--scheme").trim() === "dark";
      document.documentElement.dataset.theme = dark ? "light" : "dark";
      localStorage.setItem("equipoise-theme", dark ? "light" : "dark");
      dispatchEvent(new Event("themechange"));
    });
  });
})();
