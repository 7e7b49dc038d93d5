// Draws each figure when it comes near the screen, and draws it anew when its size, its series or the colours change.
(() => {
  "use strict";
  const root = document.documentElement;
  const MANY = 15; // a longer line has a marker at some of its points only

  // Plotly reads tags in text; what comes from data has none.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  // A colour of the style as it is by day or by night, whichever it is.
  const probe = document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  const colour = (variable) => {
    probe.style.color = `var(${variable})`;
    return getComputedStyle(probe).color;
  };
  const faint = (solid) => solid.replace(/^rgb\((.*)\)$/, "rgba($1, 0.18)");

  // The outline of a band, one closed piece for each stretch without a gap.
  const outline = (series) => {
    const x = [];
    const y = [];
    const { low, high } = series;
    let start = 0;
    for (let end = 0; end <= low.length; end += 1) {
      if (end < low.length && low[end] !== null && high[end] !== null && series.x[end] !== null) continue;
      if (end > start) {
        const across = series.x.slice(start, end);
        x.push(...across, ...across.slice().reverse(), across[0], null);
        y.push(...low.slice(start, end), ...high.slice(start, end).reverse(), low[start], null);
      }
      start = end + 1;
    }
    return { x, y };
  };

  const band = (series, visible) => ({
    ...outline(series),
    type: "scatter",
    mode: "lines",
    fill: "toself",
    fillcolor: faint(colour(series.colour)),
    line: { width: 0 },
    hoverinfo: "skip",
    visible,
  });

  const curve = (panel, series, visible) => {
    const modes = [series.width && "lines", series.symbol && "markers", series.names && "text"];
    const own = colour(series.colour);
    const values = panel.bare ? "" : "<br>%{meta[1]}: %{x:,.6~g}<br>%{meta[2]}: %{y:.5~g}";
    const trace = {
      type: "scatter",
      mode: modes.filter(Boolean).join("+"),
      x: series.x,
      y: series.y,
      visible,
      connectgaps: false,
      meta: [series.label, panel.xLabel, panel.yLabel].map(plain),
      hovertemplate: `%{meta[0]}${series.names ? " %{text}" : ""}${values}<extra></extra>`,
    };
    if (panel.bare && !series.names) {
      trace.hoverinfo = "skip";
      delete trace.hovertemplate;
    }
    if (series.width) trace.line = { color: own, width: series.width, dash: series.dash };
    if (series.symbol) {
      const edge = colour("--paper");
      trace.marker = {
        symbol: series.symbol,
        size: series.size,
        color: series.hollow ? edge : own,
        line: { color: series.hollow ? own : edge, width: series.hollow ? 1.6 : 1 },
        opacity: 1,
      };
      if (series.width && series.x.length > MANY) trace.marker.maxdisplayed = 12;
    }
    if (series.names) {
      trace.text = series.names.map(plain);
      trace.textposition = series.places;
      trace.textfont = { color: colour("--ink"), size: series.hollow ? 10 : 12 };
    }
    if (!series.width) trace.cliponaxis = false; // a point at the very edge is drawn whole
    return trace;
  };

  // How many powers of ten an axis spans.
  const decades = (range, lines) => {
    let low = Infinity;
    let high = -Infinity;
    for (const line of range ? [range] : lines) {
      for (const value of line) {
        if (value === null) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    const margins = range ? 1 : 1.15;
    return high > low ? margins * Math.log10(high / low) : 0;
  };

  // Plotly names other numbers than powers of ten where ticks are closer than 0.7 powers; not before the reader zooms in.
  const ticks = (pixels, logarithmic, range, lines) => {
    const most = Math.max(3, Math.round(pixels));
    return logarithmic ? Math.max(2, Math.min(most, Math.ceil(decades(range, lines) / 0.7) - 1)) : most;
  };

  // A range on a logarithmic axis is given in powers of ten, and its powers are set larger than other ticks.
  const axis = (logarithmic, range) => ({
    type: logarithmic ? "log" : "linear",
    ...(range ? { range: range.map((end) => (logarithmic ? Math.log10(end) : end)) } : { autorange: true }),
    gridcolor: colour("--grid"),
    linecolor: colour("--frame"),
    tickcolor: colour("--frame"),
    showline: true,
    zeroline: false,
    ticks: "outside",
    ticklen: 4,
    automargin: true,
    exponentformat: "power",
    tickfont: { size: logarithmic ? 10 : 12 },
    ...(logarithmic ? {} : { separatethousands: true, minexponent: 6 }),
  });

  const layout = (figure, panel, element) => {
    const whole = {
      width: element.clientWidth,
      height: element.clientHeight,
      margin: panel.bare ? { l: 8, r: 8, t: 8, b: 8 } : { l: 52, r: 16, t: 10, b: 34 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--muted") },
      hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--frame"), font: { color: colour("--ink") }, align: "left" },
      hovermode: "closest",
      dragmode: figure.touch ? false : "zoom",
      showlegend: false,
      uirevision: figure.revision, // while it stays, so does the reader's zoom
      xaxis: axis(panel.logX, panel.xRange),
      yaxis: axis(panel.logY, panel.yRange),
    };
    if (panel.bare) {
      whole.xaxis.visible = false;
      Object.assign(whole.yaxis, { visible: false, scaleanchor: "x", scaleratio: 1 });
    }
    const xs = panel.series.map((series) => series.x);
    const ys = panel.series.map((series) => series.y);
    whole.xaxis.nticks = ticks(whole.width / 75, panel.logX, panel.xRange, xs);
    whole.yaxis.nticks = ticks(whole.height / 42, panel.logY, panel.yRange, ys);
    return whole;
  };

  const config = { displayModeBar: false, doubleClick: "reset", showTips: false, responsive: false };

  const traces = (panel, hidden) => {
    const visible = (series) => !hidden.has(series.label);
    const bands = panel.series.filter((series) => series.low).map((series) => band(series, visible(series)));
    return [...bands, ...panel.series.map((series) => curve(panel, series, visible(series)))];
  };

  const paint = (figure) => {
    if (!figure.panels) return Promise.resolve();
    figure.width = figure.element.clientWidth;
    const done = figure.plots.map((element, place) => {
      const panel = figure.panels[place];
      return Plotly.react(element, traces(panel, figure.hidden[place]), layout(figure, panel, element), config);
    });
    return Promise.all(done);
  };

  const draw = (figure) => {
    if (figure.panels) return Promise.resolve();
    figure.panels = JSON.parse(figure.element.querySelector("script.data").textContent);
    figure.hidden = figure.panels.map((panel) => {
      const shown = new Set(panel.series.filter((series) => series.shown).map((series) => series.label));
      return new Set(panel.series.map((series) => series.label).filter((label) => !shown.has(label)));
    });
    return paint(figure);
  };

  const buttonsOf = (figure) => [...figure.element.querySelectorAll(".legend button")];
  const panelsOf = (button) => button.parentElement.dataset.panels.split(" ").map(Number);

  // A switch acts on all panels of its legend at once.
  const set = (figure, button, on) => {
    button.setAttribute("aria-pressed", String(on));
    for (const place of panelsOf(button)) {
      if (on) figure.hidden[place].delete(button.dataset.label);
      else figure.hidden[place].add(button.dataset.label);
    }
  };
  const isOn = (button) => button.getAttribute("aria-pressed") === "true";

  const alone = (figure, button) => {
    const others = [...button.parentElement.children].filter((other) => other !== button);
    const only = isOn(button) && !others.some(isOn);
    for (const other of others) set(figure, other, only);
    set(figure, button, true);
  };

  const coarse = matchMedia("(pointer: coarse)").matches;
  const figures = [...document.querySelectorAll("figure.charts")].map((element) => {
    const plots = [...element.querySelectorAll(".plot")];
    return { element, plots, panels: null, hidden: [], revision: 1, width: 0, touch: coarse };
  });

  for (const figure of figures) {
    for (const button of buttonsOf(figure)) {
      button.addEventListener("click", () => {
        set(figure, button, !isOn(button));
        paint(figure);
      });
      button.addEventListener("dblclick", () => {
        alone(figure, button);
        paint(figure);
      });
    }
    const reset = figure.element.querySelector("button.reset");
    reset.addEventListener("click", () => {
      figure.revision += 1;
      paint(figure);
    });
    if (coarse) {
      // A finger that drags wants to scroll; only who asks for it zooms by dragging.
      const zoom = reset.parentElement.insertBefore(document.createElement("button"), reset);
      zoom.type = "button";
      zoom.textContent = "Zoom by dragging";
      zoom.setAttribute("aria-pressed", "false");
      zoom.addEventListener("click", () => {
        figure.touch = !figure.touch;
        zoom.setAttribute("aria-pressed", String(!figure.touch));
        paint(figure);
      });
    }
  }

  const paintAll = () => Promise.all(figures.map(paint));
  const drawAll = () => Promise.all(figures.map(draw));

  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        near.unobserve(entry.target);
        draw(figures.find((figure) => figure.element === entry.target));
      }
    },
    { rootMargin: "500px 0px" },
  );
  const sizes = new ResizeObserver((entries) => {
    requestAnimationFrame(() => {
      for (const entry of entries) {
        const figure = figures.find((each) => each.element === entry.target);
        if (figure.width !== figure.element.clientWidth) paint(figure);
      }
    });
  });
  for (const figure of figures) {
    near.observe(figure.element);
    sizes.observe(figure.element);
  }

  document.addEventListener("themechange", paintAll);

  // Paper is white, and as wide as the style makes the page while it has this class.
  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    root.classList.add("printing");
    drawAll();
    paintAll();
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    if (before === undefined) delete root.dataset.theme;
    else root.dataset.theme = before;
    paintAll();
  });

  window.roundelay = {
    figures: figures.length,
    get drawn() {
      return figures.filter((figure) => figure.panels).length;
    },
    drawAll,
  };
})();
