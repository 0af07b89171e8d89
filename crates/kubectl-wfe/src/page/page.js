"use strict";
(() => {
  const root = document.documentElement;
  const notice = document.getElementById("notice");
  const every = Number(document.body.dataset.refresh) * 1000;
  root.classList.add("scripted");

  // Buttons copy the command beside them.
  let clearing;
  const tell = (text) => {
    clearTimeout(clearing);
    notice.textContent = text;
    if (!root.classList.contains("stale")) clearing = setTimeout(() => { notice.textContent = ""; }, 3000);
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
      tell(`Copied: ${code.textContent}`);
    } catch {
      getSelection().selectAllChildren(code);
      tell("Selected: copy it with your keyboard");
    }
  });

  // j and k move between lanes; Enter opens one.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !["j", "k"].includes(event.key)) return;
    const stops = [...document.querySelectorAll("[data-stop]")];
    const step = event.key === "j" ? 1 : -1;
    const at = stops.indexOf(document.activeElement);
    const next = stops[at < 0 ? 0 : Math.min(Math.max(at + step, 0), stops.length - 1)];
    if (next) next.focus();
  });

  // The page reads itself anew. What is open and focused stays so.
  if (!every) return;
  const asOf = () => document.querySelector(".asof time").textContent;
  const take = (text) => {
    const next = new DOMParser().parseFromString(text, "text/html");
    const fresh = next.getElementById("page");
    if (!fresh) throw new Error("the answer is not this page");
    const old = document.getElementById("page");
    const open = new Set([...old.querySelectorAll("details[open]")].map((it) => it.dataset.key));
    for (const it of fresh.querySelectorAll("details")) it.open = open.has(it.dataset.key);
    const focused = document.activeElement?.dataset?.key;
    old.replaceWith(document.adoptNode(fresh));
    if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    document.title = next.title;
    document.querySelector("link[rel=icon]").href = next.querySelector("link[rel=icon]").getAttribute("href");
    return Number(next.body.dataset.refresh) * 1000 || every;
  };
  const refresh = async () => {
    let wait = every;
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(90000) });
        const text = await answer.text();
        if (!answer.ok) throw new Error(text.slice(0, 300));
        wait = take(text);
        if (root.classList.contains("stale")) {
          root.classList.remove("stale");
          tell("Refreshed again");
        }
      } catch (error) {
        const why = error instanceof TypeError ? "kubectl wfe dashboard has ended" : error.message;
        root.classList.add("stale");
        tell(`Not refreshed since ${asOf()}: ${why}`);
      }
    }
    setTimeout(refresh, wait);
  };
  setTimeout(refresh, every);
})();
