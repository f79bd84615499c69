// Draws what the page carries.
(function () {
  "use strict";
  const specs = JSON.parse(document.getElementById("plots").textContent);
  for (const place of document.querySelectorAll("[data-plot]")) {
    try {
      entremetPlot(place, specs[Number(place.dataset.plot)]);
    } catch (error) {
      place.textContent = "This picture cannot be drawn: " + error.message;
    }
  }
})();
