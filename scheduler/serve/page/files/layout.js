// Where each node is on the map: zones are panels side by side, nodes are tiles with bars if they are few, else squares.

const TILES_UP_TO = 60;
const HEIGHT = 430; // for all of it, if that can be
const LABEL = 24;
const GAP = 16;
const MAX_PANELS = 100; // a zone each; more of them, each with its label, would make a canvas too large to be drawn
const SIZES = [30, 26, 22, 20, 18, 16, 14, 12, 11, 10, 9, 8, 7, 6];

// {width, height, tile, size: {w, h}, panels: [{zone, rows, x, y, w, columns}], row → place}
export function layout(all, width) {
  const zones = together(all);
  const total = zones.reduce((sum, { rows }) => sum + rows.length, 0);
  if (total <= TILES_UP_TO) return placed(zones, width, { w: 128, h: 58, gap: 8 }, true);
  let found = null;
  for (const side of SIZES) {
    found = placed(zones, width, { w: side, h: side, gap: side > 10 ? 2 : 1 }, false);
    if (found.height <= HEIGHT) break;
  }
  return found;
}

function together(zones) {
  if (zones.length <= MAX_PANELS) return zones;
  const others = zones.slice(MAX_PANELS - 1);
  return [...zones.slice(0, MAX_PANELS - 1), { zone: `${others.length} other zones`, rows: others.flatMap(({ rows }) => rows) }];
}

function placed(zones, width, size, tile) {
  const across = Math.max(1, Math.min(zones.length, Math.floor((width + GAP) / (tile ? 270 : 220))));
  const w = (width - GAP * (across - 1)) / across;
  const columns = Math.max(1, Math.floor((w + size.gap) / (Math.min(size.w, w) + size.gap)));
  const real = tile ? { ...size, w: (w - size.gap * (columns - 1)) / columns } : size;
  const panels = [];
  const places = new Map();
  let y = 0;
  let order = 0;
  for (let first = 0; first < zones.length; first += across) {
    const line = zones.slice(first, first + across);
    let tallest = 0;
    line.forEach(({ zone, rows }, i) => {
      const panel = { zone, rows, x: i * (w + GAP), y, w, columns, top: y + LABEL };
      rows.forEach((row, at) => {
        const x = panel.x + (at % columns) * (real.w + real.gap);
        places.set(row, { x, y: panel.top + Math.floor(at / columns) * (real.h + real.gap), order: order++ });
      });
      tallest = Math.max(tallest, LABEL + Math.ceil(rows.length / columns) * (real.h + real.gap));
      panels.push(panel);
    });
    y += tallest + GAP;
  }
  return { width, height: Math.max(0, y - GAP), tile, size: real, panels, places };
}

// The row at a point; null if there is none.
export function rowAt(map, x, y) {
  const { w, h, gap } = map.size;
  for (const panel of map.panels) {
    if (x < panel.x || x >= panel.x + panel.w || y < panel.top) continue;
    const column = Math.floor((x - panel.x) / (w + gap));
    const at = Math.floor((y - panel.top) / (h + gap)) * panel.columns + column;
    if (column < panel.columns && at < panel.rows.length) return panel.rows[at];
  }
  return null;
}
