// Follows what is under way: the server sends the page whenever it has changed, and its main part replaces the one that is shown.
const script = document.currentScript;
const source = new EventSource(script.dataset.live);
const show = ({ data }) => {
  const page = new DOMParser().parseFromString(data, "text/html");
  document.title = page.title;
  document.querySelector("main").replaceWith(page.querySelector("main"));
};
source.addEventListener("page", show);
source.addEventListener("last", (event) => {
  show(event);
  source.close();
});
