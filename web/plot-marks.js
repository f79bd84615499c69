// What plots have that uPlot has no word for: markers, hatched bars, ranges, targets. Comes before
// plot.js.
(function (root) {
  "use strict";

  const LOOKS = 8;
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [16, 4], [5, 2, 1, 2, 1, 2], [4, 6], [1, 5]];
  const MARKERS = ["circle", "square", "triangle", "diamond", "cross", "plus", "down", "ring"];
  const HATCHES = ["full", "rising", "dots", "falling", "level", "upright", "checked", "rare"];
  // More points than this are a line: markers and whiskers would be a smear, so ranges become a
  // band.
  const MARKED_MAX = 40;

  function colours(element) {
    const style = getComputedStyle(element);
    const of = (name, otherwise) => style.getPropertyValue(`--plot-${name}`).trim() || otherwise;
    const series = Array.from({ length: LOOKS }, (_, look) => of(look + 1, "#053a9f"));
    return { series, paper: of("paper", "#fff"), ink: of("ink", "#000"), faint: of("faint", "#555"), grid: of("grid", "#ddd"), target: of("target", "#a00") };
  }

  // A marker around (x, y), r in canvas pixels. Outlined shapes stay apart in black and white.
  function mark(ctx, look, x, y, r, colour, paper) {
    const polygon = (...points) => {
      points.forEach(([dx, dy], index) => (index ? ctx.lineTo(x + dx * r, y + dy * r) : ctx.moveTo(x + dx * r, y + dy * r)));
      ctx.closePath();
    };
    const strokes = (...lines) => lines.forEach(([a, b, c, d]) => (ctx.moveTo(x + a * r, y + b * r), ctx.lineTo(x + c * r, y + d * r)));
    ctx.beginPath();
    const kind = MARKERS[look];
    if (kind === "square") polygon([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]);
    else if (kind === "triangle") polygon([0, -1.2], [1.1, 0.8], [-1.1, 0.8]);
    else if (kind === "down") polygon([0, 1.2], [1.1, -0.8], [-1.1, -0.8]);
    else if (kind === "diamond") polygon([0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]);
    else if (kind === "cross") strokes([-1, -1, 1, 1], [-1, 1, 1, -1]);
    else if (kind === "plus") strokes([-1.2, 0, 1.2, 0], [0, -1.2, 0, 1.2]);
    else ctx.arc(x, y, r, 0, 2 * Math.PI);
    ctx.setLineDash([]);
    ctx.strokeStyle = colour;
    ctx.lineWidth = r / 2;
    ctx.fillStyle = kind === "ring" ? paper : colour;
    if (kind !== "cross" && kind !== "plus") ctx.fill();
    ctx.stroke();
  }

  // A fill that tells bars apart without colour.
  function hatch(ctx, look, colour, paper, ratio) {
    const kind = HATCHES[look];
    if (kind === "full") return colour;
    const tile = document.createElement("canvas");
    const size = (tile.width = tile.height = Math.round(8 * ratio));
    const pen = tile.getContext("2d");
    pen.fillStyle = paper;
    pen.fillRect(0, 0, size, size);
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = size / 4;
    pen.beginPath();
    const rising = (from) => (pen.moveTo(from - size, size), pen.lineTo(from, 0), pen.moveTo(from, size), pen.lineTo(from + size, 0));
    const falling = (from) => (pen.moveTo(from - size, 0), pen.lineTo(from, size), pen.moveTo(from, 0), pen.lineTo(from + size, size));
    if (kind === "rising" || kind === "checked") [0, size].forEach(rising);
    if (kind === "falling" || kind === "checked") [0, size].forEach(falling);
    if (kind === "level") (pen.moveTo(0, size / 2), pen.lineTo(size, size / 2));
    if (kind === "upright") (pen.moveTo(size / 2, 0), pen.lineTo(size / 2, size));
    pen.stroke();
    if (kind === "dots" || kind === "rare") pen.fillRect(size / 4, size / 4, size / 2, size / (kind === "dots" ? 2 : 4));
    return ctx.createPattern(tile, "repeat");
  }

  // The plot's own marks: what uPlot has no word for. `u` gives scales and canvas.
  function painter(u, plan, look) {
    const { ctx, bbox } = u;
    const ratio = root.uPlot.pxRatio;
    const X = (value) => u.valToPos(value, "x", true);
    const Y = (value) => u.valToPos(plan.y.scale === "log" ? Math.max(value, u.scales.y.min) : value, "y", true);
    const shown = plan.series.filter((one) => one.shown);
    const bars = shown.filter((one) => one.kind === "bars");
    const gap = () => {
      if (plan.x.scale === "category") return X(1) - X(0);
      const all = [...new Set(bars.flatMap((one) => one.x))].sort((a, b) => a - b);
      const gaps = all.slice(1).map((value, index) => X(value) - X(all[index]));
      return gaps.length ? Math.min(...gaps) : bbox.width / 4;
    };
    // Asked for while drawing: before the first drawing there are no scales.
    const width = () => (bars.length ? Math.max(ratio, (gap() * 0.8) / bars.length) : 0);
    // Bars stand beside one another; everything else stands on its x.
    const shift = (one) => (one.kind === "bars" ? (bars.indexOf(one) - (bars.length - 1) / 2) * width() : 0);
    const marked = (one) => one.kind === "points" || (one.kind === "line" && !moving(plan) && one.x.length <= MARKED_MAX);
    const banded = (one) => one.low && one.kind !== "bars" && one.x.length > MARKED_MAX;

    function drawBars(one) {
      const floor = Y(Math.max(0, u.scales.y.min));
      const wide = width();
      ctx.fillStyle = hatch(ctx, one.look, look.series[one.look], look.paper, ratio);
      ctx.strokeStyle = look.series[one.look];
      ctx.lineWidth = ratio;
      one.y.forEach((value, index) => {
        if (value === null) return;
        const place = [X(one.x[index]) + shift(one) - wide / 2, Y(value), wide * 0.92, floor - Y(value)];
        ctx.fillRect(...place);
        ctx.strokeRect(...place);
      });
    }

    function drawBand(one) {
      const whole = one.x.map((_, index) => index).filter((index) => one.low[index] !== null && one.high[index] !== null);
      ctx.beginPath();
      whole.forEach((index) => ctx.lineTo(X(one.x[index]), Y(one.high[index])));
      whole.reverse().forEach((index) => ctx.lineTo(X(one.x[index]), Y(one.low[index])));
      ctx.globalAlpha = 0.18;
      ctx.fillStyle = look.series[one.look];
      ctx.fill();
      ctx.globalAlpha = 1;
    }

    function drawWhiskers(one) {
      const cap = Math.min(4 * ratio, one.kind === "bars" ? width() / 4 : Infinity);
      // On a bar of its own colour a whisker would vanish.
      ctx.strokeStyle = one.kind === "bars" ? look.ink : look.series[one.look];
      ctx.lineWidth = 1.25 * ratio;
      ctx.setLineDash([]);
      ctx.beginPath();
      one.x.forEach((value, index) => {
        if (one.low[index] === null || one.high[index] === null) return;
        const [x, low, high] = [X(value) + shift(one), Y(one.low[index]), Y(one.high[index])];
        for (const end of [low, high]) (ctx.moveTo(x - cap, end), ctx.lineTo(x + cap, end));
        ctx.moveTo(x, low);
        ctx.lineTo(x, high);
      });
      ctx.stroke();
    }

    function drawTarget(target) {
      const along = target.axis === "y";
      const at = along ? Y(target.value) : X(target.value);
      ctx.strokeStyle = look.target;
      ctx.lineWidth = 1.5 * ratio;
      ctx.setLineDash([6 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(along ? bbox.left : at, along ? at : bbox.top);
      ctx.lineTo(along ? bbox.left + bbox.width : at, along ? at : bbox.top + bbox.height);
      ctx.stroke();
      if (!target.label) return;
      ctx.setLineDash([]);
      ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
      const beyond = !along && at + ctx.measureText(target.label).width + 8 * ratio > bbox.left + bbox.width;
      ctx.textAlign = along || beyond ? "right" : "left";
      // Above its line, or below it where there is no room above.
      const under = along && at - bbox.top < 16 * ratio;
      ctx.textBaseline = along && !under ? "bottom" : "top";
      const x = along ? bbox.left + bbox.width - 4 * ratio : at + (beyond ? -4 : 4) * ratio;
      const y = along ? at + (under ? 3 : -3) * ratio : bbox.top + 3 * ratio;
      ctx.lineWidth = 4 * ratio;
      ctx.lineJoin = "round";
      ctx.strokeStyle = look.paper;
      ctx.strokeText(target.label, x, y);
      ctx.fillStyle = look.target;
      ctx.fillText(target.label, x, y);
    }

    // A mark on the edge is drawn whole.
    const clipped = (draw, beyond = 0) => {
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left - beyond, bbox.top - beyond, bbox.width + 2 * beyond, bbox.height + 2 * beyond);
      ctx.clip();
      draw();
      ctx.restore();
    };
    return {
      below: () => clipped(() => (shown.filter(banded).forEach(drawBand), bars.forEach(drawBars))),
      above: () =>
        clipped(() => {
          plan.targets.forEach(drawTarget);
          shown.filter((one) => one.low && !banded(one)).forEach(drawWhiskers);
          for (const one of shown.filter(marked)) {
            const at = (value, index) => value !== null && mark(ctx, one.look, X(one.x[index]), Y(value), 3.2 * ratio, look.series[one.look], look.paper);
            one.y.forEach(at);
          }
        }, 5 * ratio),
    };
  }

  // A plot over the clock grows: its lines would lose their markers on the way.
  function moving(plan) {
    return plan.x.scale === "time";
  }

  // What a legend shows of a series.
  function swatch(plan, one, look) {
    const canvas = document.createElement("canvas");
    const ratio = root.uPlot.pxRatio;
    const [width, height] = one.kind === "bars" ? [12, 12] : [28, 12];
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.setAttribute("aria-hidden", "true");
    const ctx = canvas.getContext("2d");
    const colour = look.series[one.look];
    if (one.kind === "bars") {
      ctx.fillStyle = hatch(ctx, one.look, colour, look.paper, ratio);
      ctx.fillRect(0, 0, canvas.width, canvas.height);
      ctx.strokeStyle = colour;
      ctx.lineWidth = 2 * ratio;
      ctx.strokeRect(0, 0, canvas.width, canvas.height);
      return canvas;
    }
    const middle = canvas.height / 2;
    if (one.kind !== "points") {
      ctx.strokeStyle = colour;
      ctx.lineWidth = 2 * ratio;
      ctx.setLineDash(DASHES[one.look].map((length) => length * ratio));
      ctx.beginPath();
      ctx.moveTo(0, middle);
      ctx.lineTo(canvas.width, middle);
      ctx.stroke();
    }
    if (one.kind === "points" || (one.kind === "line" && !moving(plan) && one.x.length <= MARKED_MAX)) mark(ctx, one.look, canvas.width / 2, middle, 3.2 * ratio, colour, look.paper);
    return canvas;
  }

  root.entremetPlotMarks = { LOOKS, DASHES, colours, mark, hatch, painter, swatch };
})(typeof window === "undefined" ? globalThis : window);
