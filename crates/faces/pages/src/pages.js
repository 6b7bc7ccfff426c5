// Keeps the part of a page that shows what runs and waits up to date, and sends notes with a token, which a form alone cannot.
"use strict";

const live = document.querySelector("[data-live]");
if (live && window.EventSource) {
  let waiting = false;
  const renew = async () => {
    if (waiting || document.hidden) return;
    waiting = true;
    try {
      const answer = await fetch(location.href);
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        // What a reader holds on to stays until he lets go.
        if (!document.querySelector("main").contains(document.activeElement)) {
          document.querySelector("main").replaceWith(page.querySelector("main"));
        }
      }
    } catch {
      // The server is away; the next event tries again.
    } finally {
      setTimeout(() => { waiting = false; }, 1000);
    }
  };
  const events = new EventSource("/events");
  events.onmessage = renew;
  for (const kind of ["queue", "ticket", "change"]) events.addEventListener(kind, renew);
}

for (const form of document.querySelectorAll("form[data-note]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = new FormData(form);
    const answer = await fetch("/notes", {
      method: "POST",
      headers: { authorization: `Bearer ${fields.get("token")}`, "content-type": "application/json" },
      body: JSON.stringify({
        run: fields.get("run"), text: fields.get("text"), acknowledged: fields.has("acknowledged"),
      }),
    });
    if (answer.ok) location.reload();
    else form.querySelector("button").textContent = answer.status === 401 ? "the token is not known" : await answer.text();
  });
}
