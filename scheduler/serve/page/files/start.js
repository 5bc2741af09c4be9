// Says so if the page does not start, or fails later: of a module that cannot be loaded nobody else would hear.
// A plain script, read before the modules; it needs none of them.

(() => {
  const SLOW_MS = 15000;
  const said = [];
  let hasStarted = false;
  document.addEventListener("started", () => (hasStarted = true));

  function tell(text) {
    if (said.includes(text) || said.length > 3) return;
    said.push(text);
    const box = document.getElementById("failure");
    if (!box) return;
    box.querySelector("span").textContent = said.join(" ");
    box.hidden = false;
  }

  addEventListener(
    "error",
    (event) => {
      const file = event.target?.src || event.target?.href;
      if (file && !file.startsWith(new URL(".", location).href)) return; // of a browser's extension: the policy forbids it
      if (file) tell(`${file.split("/").pop()} could not be loaded.`);
      else tell(`Something went wrong on this page: ${String(event.message).slice(0, 300)}.`);
    },
    true, // an element's error reaches its window only so
  );
  addEventListener("unhandledrejection", (event) => tell(`Something went wrong on this page: ${String(event.reason).slice(0, 300)}.`));

  addEventListener("DOMContentLoaded", () => {
    document.getElementById("reload").addEventListener("click", () => location.reload());
    for (const text of said.splice(0)) tell(text);
    setTimeout(() => {
      if (!hasStarted) tell("The page has not started yet: its scripts have not come, or this browser does not run them.");
    }, SLOW_MS); // the modules have run by now, if they have come
  });
})();
