// The rows of a table, drawn again only where what they show has changed: so a click begun on one of them is not lost,
// and neither are the focus and a text that is being selected.

// `make(item)` makes a row; items are compared by what `told(item)` makes of them, a text.
export function redraw(body, items, make, told = JSON.stringify) {
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  items.forEach((item, i) => {
    const text = told(item);
    const before = body.rows[i];
    if (before?.told === text) return;
    const row = make(item);
    row.told = text;
    if (before) before.replaceWith(row);
    else body.append(row);
  });
  while (body.rows.length > items.length) body.lastElementChild.remove();
  if (focused !== undefined && !body.contains(document.activeElement)) keyed(body, focused)?.focus({ preventScroll: true });
}

// The button with that key: a row's buttons are made anew with the row.
export function keyed(within, key) {
  return [...within.querySelectorAll("button[data-key]")].find((button) => button.dataset.key === key);
}
