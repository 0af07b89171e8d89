// Checks pages in a headless Chromium: node check.js CHROMIUM PAGES [SHOTS]
//
// Each page in each look has no console messages, no requests, no scripts from hostile names, no findings of axe, and
// nothing wider than the window. Then it checks the page's own script: keys, copying and refreshing.
"use strict";
const assert = require("node:assert");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const puppeteer = require("puppeteer-core");

const [chromium, pages, shots] = process.argv.slice(2);
const LOOKS = {
  light: { width: 1280, height: 900, scheme: "light" },
  dark: { width: 1280, height: 900, scheme: "dark" },
  narrow: { width: 320, height: 720, scheme: "light" },
};

/** Opens a page, and collects its trouble. Messages that contain `expected` are no trouble. */
async function open(browser, url, look, expected = null) {
  const page = await browser.newPage();
  const trouble = [];
  const note = (text) => { if (!expected || !text.includes(expected)) trouble.push(text); };
  page.on("console", (it) => note(`console: ${it.text()}`));
  page.on("pageerror", (it) => note(`error: ${it.message}`));
  page.on("dialog", (it) => { note(`dialog: ${it.message()}`); it.dismiss(); });
  page.on("request", (it) => { if (!/^(file|data):/.test(it.url()) && new URL(it.url()).origin !== new URL(url).origin) note(`request: ${it.url()}`); });
  await page.setViewport({ width: look.width, height: look.height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: look.scheme }]);
  await page.goto(url, { waitUntil: "load" });
  return { page, trouble };
}

async function looks(browser) {
  for (const name of ["incident", "storm", "hostile", "empty"]) {
    for (const [kind, look] of Object.entries(LOOKS)) {
      const { page, trouble } = await open(browser, pathToFileURL(path.join(pages, `${name}.html`)).href, look);
      const sticksOut = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(sticksOut <= 0, `${name} ${kind}: ${sticksOut} pixels stick out`);
      if (shots) await page.screenshot({ path: path.join(shots, `${name}-${kind}.png`), fullPage: name !== "storm" });
      await page.evaluate(() => document.querySelectorAll("details").forEach((it, nth) => { it.open = nth < 3; }));
      await page.evaluate(axe);
      const found = await page.evaluate(async () => (await window.axe.run()).violations);
      const told = found.map((it) => `${it.id}: ${it.help}: ${it.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
      assert.deepStrictEqual(told, [], `${name} ${kind}: axe`);
      assert.deepStrictEqual(trouble, [], `${name} ${kind}`);
      await page.close();
    }
  }
}

async function keysAndCopies(browser) {
  const server = http.createServer((_, response) => {
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end(fs.readFileSync(path.join(pages, "incident.html")));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${server.address().port}/`;
  await browser.defaultBrowserContext().overridePermissions(url, ["clipboard-read", "clipboard-write", "clipboard-sanitized-write"]);
  const { page, trouble } = await open(browser, url, LOOKS.light);
  await page.bringToFront();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  const opened = await page.$$eval("details[open]", (all) => all.map((it) => it.dataset.key));
  assert.deepStrictEqual(opened, ["lane:node/worker-1"]);
  const wanted = "kubectl wfe clear node/worker-1 --reason ''";
  await page.click(`button[data-key="copy:${wanted}"]`);
  await page.waitForFunction(() => document.getElementById("notice").textContent !== "");
  assert.strictEqual(await page.$eval("#notice", (it) => it.textContent), `Copied: ${wanted}`);
  assert.strictEqual(await page.evaluate(() => navigator.clipboard.readText()), wanted);
  assert.deepStrictEqual(trouble, []);
  await page.close();
  server.close();

  const bare = await browser.newPage();
  await bare.setJavaScriptEnabled(false);
  await bare.goto(pathToFileURL(path.join(pages, "incident.html")).href);
  assert.strictEqual(await bare.$eval("button.copy", (it) => it.checkVisibility()), false, "no button without the script");
  assert.ok((await bare.$eval("main", (it) => it.innerText)).includes(wanted), "the command is text");
  await bare.close();
}

async function refreshes(browser) {
  const text = fs.readFileSync(path.join(pages, "incident-live.html"), "utf8");
  const second = text.replaceAll("2 need a person", "7 need a person");
  let answer = (response) => response.end(text);
  const server = http.createServer((_, response) => {
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.setHeader("Connection", "close");
    answer(response);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const { page, trouble } = await open(browser, `http://127.0.0.1:${server.address().port}/`, LOOKS.light, "Failed to load resource");
  const isStale = () => document.documentElement.classList.contains("stale");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  const focused = () => page.evaluate(() => document.activeElement.dataset.key);
  const before = await focused();

  answer = (response) => response.end(second);
  await page.waitForFunction(() => document.title.startsWith("7 need a person"));
  assert.ok(await page.$("details[open]"), "what is open stays open");
  assert.strictEqual(await focused(), before, "the focus stays");
  answer = (response) => { response.statusCode = 502; response.end("cannot list pods"); };
  await page.waitForFunction(isStale);
  const notice = await page.$eval("#notice", (it) => it.textContent);
  assert.strictEqual(notice, "Not refreshed since 2026-01-02 18:47:02 UTC: cannot list pods");
  if (shots) await page.screenshot({ path: path.join(shots, "stale.png") });
  answer = (response) => response.end(text);
  await page.waitForFunction(() => !document.documentElement.classList.contains("stale"));
  server.close();
  server.closeAllConnections();
  await page.waitForFunction(isStale);
  assert.ok((await page.$eval("#notice", (it) => it.textContent)).endsWith("kubectl wfe dashboard has ended"));
  assert.deepStrictEqual(trouble, []);
  await page.close();
}

(async () => {
  const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    await looks(browser);
    await keysAndCopies(browser);
    await refreshes(browser);
  } finally {
    await browser.close();
  }
  console.log("page: Chromium and axe find nothing in light, dark and 320 pixels, with 10,000 executions too");
})().catch((error) => {
  console.error(`page: ${error.stack}`);
  process.exit(1);
});
