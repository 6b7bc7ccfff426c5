// Opens pages in Chromium, on a desktop and on a phone, light and dark: no console error, no finding of axe, nothing wider than the screen,
// no page over 300 kB. Says how long the slowest took to its first byte, which depends on the machine and fails nothing.
// Usage: node check.mjs CHROMIUM [--shots FOLDER] [--follow PAGE] PAGE...
// --follow opens the page of a ticket that waits or runs, and waits until the page says by itself what was found: once by its script, and
// once without scripts. With $TOKEN it is the password of every page.
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

const MOST_BYTES = 300_000;
const MOST_SCRIPT = 15_000;
const PATIENCE = 300_000;
const SCREENS = [
  { name: "desktop", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "phone", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
];

const [executablePath, ...rest] = process.argv.slice(2);
const option = (name) => (rest[0] === name ? rest.splice(0, 2)[1] : null);
const shots = option("--shots");
const followed = option("--follow");
const token = process.env.TOKEN;
const opened = token ? { httpCredentials: { username: "reader", password: token } } : {};
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
let faults = 0;
let slowest = { milliseconds: 0 };
const fault = (page, screen, what) => {
  faults += 1;
  console.log(`${page} (${screen}): ${what}`);
};

const open = async (address, name, settings) => {
  const context = await browser.newContext({ ...opened, ...settings });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && fault(address, name, `console: ${message.text()}`));
  page.on("pageerror", (error) => fault(address, name, `script: ${error}`));
  page.on("response", async (answer) => {
    if (answer.request().resourceType() !== "script") return;
    const bytes = (await answer.body()).length;
    if (bytes > MOST_SCRIPT) fault(address, name, `${bytes} bytes of script`);
  });
  const answer = await page.goto(address);
  if (!answer.ok() && answer.status() !== 0) fault(address, name, `answered with ${answer.status()}`);
  return { context, page, answer };
};

const follow = async (name, javaScriptEnabled) => {
  const { context, page } = await open(followed, name, { javaScriptEnabled });
  const before = await page.locator("main .outcome b").first().textContent();
  try {
    await page.waitForFunction(
      () => /decided|undecided|void|failed/.test(document.querySelector("main .outcome b")?.textContent),
      null,
      { timeout: PATIENCE },
    );
    const after = await page.locator("main .outcome b").first().textContent();
    console.log(`${followed} (${name}): ${before}, then ${after}`);
  } catch (error) {
    fault(followed, name, `it does not say what was found: ${error.message}`);
  }
  await context.close();
};
if (followed) await Promise.all([follow("by script", true), follow("without scripts", false)]);

for (const [number, address] of rest.entries()) {
  for (const { name, ...screen } of SCREENS) {
    const { context, page, answer } = await open(address, name, screen);
    const bytes = (await answer.body()).length;
    if (bytes > MOST_BYTES) fault(address, name, `${bytes} bytes`);
    const { violations } = await new AxeBuilder({ page }).analyze();
    for (const { id, impact, nodes } of violations) fault(address, name, `${id} (${impact}): ${nodes[0].html}`);
    if (await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)) fault(address, name, "wider than the screen");
    if (!(await page.title())) fault(address, name, "no title");
    const milliseconds = await page.evaluate(() => {
      const [load] = performance.getEntriesByType("navigation");
      return load.responseStart - load.requestStart;
    });
    if (milliseconds > slowest.milliseconds) slowest = { milliseconds, address };
    if (shots) await page.screenshot({ path: `${shots}/${number}-${name}.png`, fullPage: true });
    await context.close();
  }
}
await browser.close();
if (slowest.address) console.log(`first byte: at most ${slowest.milliseconds.toFixed(0)} ms (${slowest.address})`);
console.log(`${rest.length} pages, ${faults} faults`);
process.exit(faults || !rest.length ? 1 : 0);
