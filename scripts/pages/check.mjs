// Opens pages in Chromium, on a desktop and on a phone, light and dark: no console error, no finding of axe, nothing wider than the screen,
// no page over 300 kB. Usage: node check.mjs CHROMIUM [--shots FOLDER] PAGE...
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

const MOST_BYTES = 300_000;
const SCREENS = [
  { name: "desktop", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "phone", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
];

const [executablePath, ...rest] = process.argv.slice(2);
const shots = rest[0] === "--shots" ? rest.splice(0, 2)[1] : null;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
let faults = 0;
const fault = (page, screen, what) => {
  faults += 1;
  console.log(`${page} (${screen}): ${what}`);
};
for (const [number, address] of rest.entries()) {
  for (const { name, ...screen } of SCREENS) {
    const context = await browser.newContext(screen);
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && fault(address, name, `console: ${message.text()}`));
    page.on("pageerror", (error) => fault(address, name, `script: ${error}`));
    const answer = await page.goto(address);
    const bytes = (await answer.body()).length;
    if (!answer.ok() && answer.status() !== 0) fault(address, name, `answered with ${answer.status()}`);
    if (bytes > MOST_BYTES) fault(address, name, `${bytes} bytes`);
    const { violations } = await new AxeBuilder({ page }).analyze();
    for (const { id, impact, nodes } of violations) fault(address, name, `${id} (${impact}): ${nodes[0].html}`);
    if (await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)) fault(address, name, "wider than the screen");
    if (!(await page.title())) fault(address, name, "no title");
    if (shots) await page.screenshot({ path: `${shots}/${number}-${name}.png`, fullPage: true });
    await context.close();
  }
}
await browser.close();
console.log(`${rest.length} pages, ${faults} faults`);
process.exit(faults || !rest.length ? 1 : 0);
