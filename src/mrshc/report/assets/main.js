"use strict";
// Start the page. `window.page` makes the page accessible to tests and to the console of the browser.
const DATA = JSON.parse(document.getElementById("data").textContent);
window.page = DATA.kind === "result" ? new ResultPage(DATA) : new ComparisonPage(DATA);
