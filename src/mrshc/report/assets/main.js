"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
window.page = DATA.kind === "result" ? new ResultPage(DATA) : new ComparisonPage(DATA);
